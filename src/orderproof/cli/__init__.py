"""The command line: one file for each command."""

from orderproof.cli.application import main as main
