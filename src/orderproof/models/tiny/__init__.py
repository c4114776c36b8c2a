"""Tiny versions of an architecture: the same classes and branches, small sizes, random weights."""
