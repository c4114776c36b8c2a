"""Rules for this family of operators."""
