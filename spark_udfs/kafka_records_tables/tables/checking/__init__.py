"""The problems that the table checks looks for."""
