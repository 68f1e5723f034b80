"""The parameters of every pipeline as frozen, bounded models: one module a pipeline."""
