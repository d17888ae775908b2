"""Files of a log: how they are found on any file system or in archives, and their content at the moment of opening."""
