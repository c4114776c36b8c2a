"""The version of this package: that of orderproof, which a test of orderproof compares."""

__version__ = "0.1.0"
