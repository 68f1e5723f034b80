"""How calls are spread: in one process, or over several."""
