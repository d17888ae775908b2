"""The state that group and share coordinators build from records: one model, independent of tables and engines."""
