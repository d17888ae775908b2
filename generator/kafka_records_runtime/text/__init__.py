"""Names and texts: cases, printing, the nearest name, the text of JSON and of Java. Needs only the standard library."""
