"""What a group coordinator and a share coordinator make of records: one model, independent of tables and engines."""
