"""Causes of differences, one file each: changes of the reference that reproduce what a port computes."""
