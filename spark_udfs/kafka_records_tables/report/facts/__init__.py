"""Facts that rules look up about suspect groups, such as members, single commits, and ends of logs over time."""
