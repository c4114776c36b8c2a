"""The laws that are proved on a graph: one file per law."""
