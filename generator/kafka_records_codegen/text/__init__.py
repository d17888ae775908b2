"""The building blocks of generated texts: headers, templates, docstrings, lines, black."""
