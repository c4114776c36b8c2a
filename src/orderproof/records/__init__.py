"""Plain results as data that prints, compares and serialises. Nothing here imports torch."""
