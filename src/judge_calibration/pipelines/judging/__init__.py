"""Judging: from pairs to planned calls, through the call store, to verdicts."""
