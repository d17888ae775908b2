"""The answers of tables as values, and modules that print them."""
