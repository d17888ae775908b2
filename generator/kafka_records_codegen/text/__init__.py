"""How generated texts are put together: headers, templates, docstrings, lines, black."""
