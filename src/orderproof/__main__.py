"""`python -m orderproof` runs the command line."""

from orderproof.cli import program

program()
