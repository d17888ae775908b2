"""How commands print on a terminal, and how they end."""
