"""Blinded human labels: the plan of a round, its packets, what comes back, and what it is worth."""
