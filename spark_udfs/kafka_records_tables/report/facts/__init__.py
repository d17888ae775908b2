"""What rules ask of the groups that they suspect: members, commits one by one, ends of logs over time."""
