"""Facts about tensors of an open graph: where two runs agree, or which axes move, and how facts are combined."""
