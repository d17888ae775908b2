"""Tools for this repository. Nothing here is installed."""
