"""The words that tables say, and what stands behind each. Loads nothing, so that declarations can name them."""
