"""The broker client: the implementation of `sources.live` and `sources.client_config`."""
