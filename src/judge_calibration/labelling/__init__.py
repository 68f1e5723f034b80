"""Human labels: sampling plans, assignments, blinded packets, label files, adjudication."""
