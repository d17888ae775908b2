"""Records of a topic: their framing, their classes, how to read them, and their form in JSON."""
