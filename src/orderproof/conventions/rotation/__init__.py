"""Rotary functions, and questions about them."""
