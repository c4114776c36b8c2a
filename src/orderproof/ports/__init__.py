"""Ports of a model: other implementations that read the same checkpoint, compared with transformers."""
