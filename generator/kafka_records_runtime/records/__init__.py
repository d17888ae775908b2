"""Records of a topic: their framing, their classes, how they are read, and their form in JSON."""
