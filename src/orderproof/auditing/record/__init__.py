"""Recordings of a subject: its calls, their graphs, and how they are run."""
