"""Talking to brokers: what `sources.live` and `sources.client_config` are made of."""
