"""What a judge sees in answers and what it rewards: attribute reads and profiles."""
