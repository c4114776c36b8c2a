"""Decisions on laws: proofs, theorems and measurements, and the verdict that follows."""
