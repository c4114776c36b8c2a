"""The abstract domain: facts, moves, values, axis labels and constants."""
