"""Checksummed, versioned forms of the kedro-datasets classes."""
