"""Libraries whose functions can be asked by name; a folder that is its own registry."""
