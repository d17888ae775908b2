"""`make follow RELEASE=…`: brings our specs, in our words, and everything made from them up to a release of Kafka."""
