"""Primitives of JAX, one file for each family."""
