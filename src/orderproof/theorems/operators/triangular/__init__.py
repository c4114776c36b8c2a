"""Triangles of matrices, and systems of equations with one."""
