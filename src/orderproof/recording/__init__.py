"""Recording of a module's forward call as a plain graph, in the eager world: see `recorder`."""
