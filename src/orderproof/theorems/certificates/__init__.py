"""Certificates of theorems, as data for the recheck."""
