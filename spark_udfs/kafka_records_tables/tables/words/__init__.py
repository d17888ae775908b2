"""The words in the columns of tables, and their meanings. The modules load quickly, so that declarations can use
them."""
