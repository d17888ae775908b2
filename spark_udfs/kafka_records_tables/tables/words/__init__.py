"""The values of columns in tables, and their meanings. The modules load quickly, so declarations can use them."""
