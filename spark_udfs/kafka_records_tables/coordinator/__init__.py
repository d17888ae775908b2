"""What a group coordinator and a share coordinator make of records: one model, which knows no table and no engine."""
