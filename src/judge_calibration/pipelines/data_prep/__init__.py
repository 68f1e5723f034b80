"""Pairs in: the authored bank, imported files and logs, joined, split, and drawn from."""
