"""The road of a verdict: protocols, instrument identity, calls, the call store, answers, parsers."""
