"""The resolved model: what every product of the generator is made from."""
