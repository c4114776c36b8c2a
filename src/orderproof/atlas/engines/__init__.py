"""Where the rows of the atlas are made: on this machine, or on a Ray cluster."""
