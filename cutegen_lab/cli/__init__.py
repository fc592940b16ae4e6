"""The command line: the notebook's verbs for scripts and CI. ``main`` imports a command's module when it is used."""

from cutegen_lab.cli.main import main

__all__ = ["main"]
