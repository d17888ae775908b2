"""Facts that rules look up about suspect groups: members, single commits, ends of logs over time."""
