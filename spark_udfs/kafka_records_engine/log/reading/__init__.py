"""Reading a log: entries are cut, checked and become rows."""
