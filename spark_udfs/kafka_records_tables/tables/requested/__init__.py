"""Fills tables from the answers of coordinators, for clusters whose coordinator topics may not be read."""
