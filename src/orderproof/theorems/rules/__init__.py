"""One module for each family of operators; each registers its rules when it is imported."""
