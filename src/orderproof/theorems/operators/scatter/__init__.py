"""Elements written to places given by indices, and copies."""
