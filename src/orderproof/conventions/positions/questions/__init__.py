"""Questions about tables of positions; a folder that is its own registry."""
