"""Theorems about runs with the tokens in another order: facts, forms of operators, steps, recordings."""
