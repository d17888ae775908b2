"""State of share partitions, folded as the share coordinator folds it."""
