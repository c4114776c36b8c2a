"""Elements at other places: dimensions reordered, reshaped, repeated, taken in parts, shifted."""
