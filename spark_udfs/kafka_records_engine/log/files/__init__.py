"""Files of a log: their location, on any file system or in archives, and their content when they were opened."""
