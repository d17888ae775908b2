"""One module per product. Each converts the model to `{path: text}`."""
