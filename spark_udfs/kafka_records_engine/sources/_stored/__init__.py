"""The files of a snapshot directory. `sources.snapshots` reads them, `sources.snapshot_runs` adds to them."""
