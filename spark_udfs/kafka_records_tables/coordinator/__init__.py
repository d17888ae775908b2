"""The state that group and share coordinators build from records. One model for all tables and engines."""
