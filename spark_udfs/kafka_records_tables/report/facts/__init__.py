"""Facts that rules look up about suspected groups: members, single commits, ends of logs over time."""
