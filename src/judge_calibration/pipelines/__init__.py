"""The six pipelines."""
