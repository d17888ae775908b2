"""The problems that the table `checks` reports."""
