"""The files of a snapshot directory. `sources.snapshots` reads them, and `sources.snapshot_runs` adds records."""
