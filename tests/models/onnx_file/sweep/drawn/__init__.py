"""Random calls of the operators, one file for each family."""
