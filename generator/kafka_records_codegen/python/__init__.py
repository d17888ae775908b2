"""Generates the bodies of readers and writers: straight-line code, one function per layout."""
