"""The words that tables say, and what is after each. Loads nothing, so that declarations can name them."""
