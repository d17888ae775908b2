"""Finds what a change of specs breaks: two states of the same specs are compared rule by rule."""
