"""The metadata log of a cluster, replayed."""
