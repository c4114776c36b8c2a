"""Image models: patches as tokens, and models that read a whole image."""
