"""Records of log partitions, decoded in columns or one by one."""
