"""Rules of the walk of tensors that move with the tokens."""
