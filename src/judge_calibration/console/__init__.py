"""The project's own commands, one module each."""
