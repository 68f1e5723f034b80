"""Making a judge better: the frozen split, the shared training subsets, and what adaptation gains."""
