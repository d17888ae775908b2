"""Messages: what their codecs have in common, and their forms in JSON and Avro."""
