"""Names and texts: cases, printing, the nearest name, and text as JSON and as Java writes it. Needs only the standard
library."""
