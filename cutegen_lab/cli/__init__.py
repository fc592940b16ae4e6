"""The command line: the notebook's verbs for scripts and CI. ``main`` imports a command only when it is asked for."""

from cutegen_lab.cli.main import main

__all__ = ["main"]
