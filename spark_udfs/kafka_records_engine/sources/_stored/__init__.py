"""How a snapshot lies in a directory. `sources.snapshots` reads it, `sources.snapshot_runs` adds to it."""
