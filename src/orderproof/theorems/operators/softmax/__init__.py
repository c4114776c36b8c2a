"""Softmax, and the rows that it shares with the largest element."""
