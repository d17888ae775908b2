"""Messages: the common part of their codecs, and their forms in JSON and Avro."""
