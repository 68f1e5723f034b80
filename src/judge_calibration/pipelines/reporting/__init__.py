"""Reporting: from verdicts, pairs and labels to tables that say how far a judge may be trusted."""
