"""The version of this package, and of its JSON documents' producer."""

__version__ = "0.1.0"
