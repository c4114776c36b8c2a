"""The functions of libraries, one file a library: each needs the library and numpy, and nothing of this package."""
