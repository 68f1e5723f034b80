"""Attribute profiles of judges: inventory, reads, agreement, weights."""
