"""Tensors made of other tensors: joined, padded, with parts replaced."""
