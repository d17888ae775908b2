"""Facts that rules look up about groups they suspect: members, single commits, ends of logs over time."""
