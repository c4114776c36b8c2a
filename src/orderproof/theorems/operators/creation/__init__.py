"""Tensors of numbers."""
