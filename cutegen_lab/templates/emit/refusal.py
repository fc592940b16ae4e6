"""Why a module cannot be specialised for a config."""

from __future__ import annotations


class CannotSpecialise(Exception):
    """The module cannot be specialised for a config; the message says why."""
