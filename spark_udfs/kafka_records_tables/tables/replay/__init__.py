"""Groups, replayed as a coordinator does it: members, assignments, subscriptions, states, changes."""
