"""What a person decides with: figures, tables, the page, gates."""
