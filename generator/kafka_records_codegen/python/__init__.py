"""The bodies of generated readers and writers: straight-line code, one function per layout."""
