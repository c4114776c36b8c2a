"""Numbers computed from rows, and from the elements up to an index."""
