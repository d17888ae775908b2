"""The log: the format of its files (batches, compression, CRC) and the files (finding, opening, vetting, resync)."""
