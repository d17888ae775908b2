"""`make follow RELEASE=…`: our specs as a release of Kafka has them, in our words, with all that comes from them."""
