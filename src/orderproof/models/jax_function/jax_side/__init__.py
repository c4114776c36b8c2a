"""The code that runs in the process of JAX, by its path: it imports jax and nothing of this package."""
