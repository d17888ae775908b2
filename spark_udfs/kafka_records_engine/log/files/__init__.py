"""Finds the files of a log on any file system or in archives, and opens them so that their content does not change."""
