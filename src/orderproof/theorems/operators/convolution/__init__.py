"""Windows of the last dimensions: convolutions, pooling, other resolutions."""
