"""Equivariance to permutations of the tokens, for every number of tokens and every permutation."""
