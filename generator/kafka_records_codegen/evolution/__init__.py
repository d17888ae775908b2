"""What a change of specs breaks: two states of the same specs, compared rule by rule."""
