"""What commands say on a terminal, and how they end."""
