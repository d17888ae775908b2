"""The runtime of generated code: wire primitives, errors, schemas and the schema walker. Needs only the standard
library."""
