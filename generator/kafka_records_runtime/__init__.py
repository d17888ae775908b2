"""What generated code calls: wire primitives, errors, schemas and the schema walker. Standard library
only."""
