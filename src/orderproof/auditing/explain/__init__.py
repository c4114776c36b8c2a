"""Findings in words: where order enters, where runs first differ, and what to change."""
