"""The resolved model, from which the generator makes every product."""
