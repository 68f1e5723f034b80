"""What the hooks and commands share about a Kedro session: its inputs, its record, its errors in words."""
