"""Blinded labelling by people: plan, packets, labels, adjudication, analysis."""
