"""The command line: one command a file."""

from orderproof.cli.application import main as main
