"""The engine's side of a comparison: files that need an engine, numpy and the standard library, and no orderproof.

`serving` is the program; NAME_side.py loads checkpoints into the engine of that name.
"""
