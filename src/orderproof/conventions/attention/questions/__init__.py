"""Questions about attention functions; a folder that is its own registry."""
