"""Files of a log: where they are, on any file system and in archives, and what they held when they were opened."""
