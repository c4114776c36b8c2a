"""Sensitivity to word order: how far the outputs of a model move when the words of a sentence are reordered."""
