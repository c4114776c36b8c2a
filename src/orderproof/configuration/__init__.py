"""The files of a project: its subjects and their options, accepted findings, and reports that are kept. No torch."""
