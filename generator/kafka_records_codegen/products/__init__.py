"""One module per product. Each turns the model into `{path: text}`."""
