"""Why a module has no text for one config."""

from __future__ import annotations


class CannotSpecialise(Exception):
    """The module is not one that a config can be folded into; the message says why."""
