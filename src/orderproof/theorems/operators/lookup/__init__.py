"""Elements chosen by integer indices."""
