"""Environments of engines that need other versions of libraries than this package: pinned, in the cache folder."""
