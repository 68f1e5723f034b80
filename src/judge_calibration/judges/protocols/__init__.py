"""Protocols: each owns its prompt and its parser together."""
