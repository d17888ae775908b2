"""Records of a topic: what frames their messages, their classes, reading them, their form in JSON."""
