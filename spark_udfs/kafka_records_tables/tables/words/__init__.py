"""The words in the columns of tables, and what they mean. Imports nothing heavy, so that declarations can name them."""
