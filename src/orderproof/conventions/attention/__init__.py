"""Attention functions, and questions about them."""
