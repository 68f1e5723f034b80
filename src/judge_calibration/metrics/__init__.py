"""Reliability statistics: one statistic a file, arrays and frames in, small typed results out."""
