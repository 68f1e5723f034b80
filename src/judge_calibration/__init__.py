"""How far an LLM judge can be trusted: pairs, labels, judges, statistics, adaptation, and the report."""

__version__ = "0.1.0"
