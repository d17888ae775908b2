"""What the table checks looks for."""
