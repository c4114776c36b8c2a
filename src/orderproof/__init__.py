"""orderproof: prove what a sequence model knows about the order of its tokens."""

__version__ = "0.1.0"
