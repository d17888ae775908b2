"""Records of log partitions, decoded into columns or one by one."""
