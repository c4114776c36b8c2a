"""Functions and models of JAX as modules of torch: a process of its own traces and calls them."""
