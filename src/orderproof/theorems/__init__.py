"""Facts about two runs of an open graph: for every number of tokens and rows, and every value of its fixed inputs."""
