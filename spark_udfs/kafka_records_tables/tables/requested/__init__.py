"""Tables out of what coordinators answer, for clusters whose topics of coordinators may not be read."""
