"""Searches for runs that violate a law, and runs in calls of which nothing is proved."""
