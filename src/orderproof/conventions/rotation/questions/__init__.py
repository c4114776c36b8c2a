"""Questions about rotary functions; a folder that is its own registry."""
