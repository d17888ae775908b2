"""One module per product: each turns the model into `{path: text}`."""
