"""How long an approval also counts for the candidates that follow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cutegen_lab.core.errors import InputError

USAGE = "Write '3 steps', 'within 5%' or 'until slower'; nothing for this step alone."
_STEPS = re.compile(r"(?:the )?(?:next )?(\d{1,4})(?: steps?)?")
_WITHIN = re.compile(r"(?:until )?within (\d{1,4}(?:\.\d{1,4})?) ?%(?: of the floor)?")
_SLOWER = re.compile(r"(?:until )?slower")


@dataclass(frozen=True)
class Scope:
    """Until when candidates that pass and are faster are approved without asking. The analyst is asked about all
    others."""

    until: Literal["steps", "floor", "slower"]
    """What ends the scope: a number of steps, a time near the floor, or only a candidate that is not faster."""
    steps: int = 0
    """Maximum number of candidates that it approves ("steps")."""
    within: float = 0.0
    """Distance from the floor, as a fraction of it, at which the analyst is asked again ("floor")."""

    def __str__(self) -> str:
        match self.until:
            case "steps":
                return f"the next {self.steps} steps" if self.steps != 1 else "the next step"
            case "floor":
                return f"until within {100 * self.within:g}% of the floor"
        return "until slower"


def scope_of(text: str) -> Scope | None:
    """Reads ``3 steps``, ``within 5%`` or ``until slower``; None for an empty text. Raises InputError for other
    text."""
    said = " ".join(text.lower().split())
    if not said:
        return None
    if (found := _STEPS.fullmatch(said)) and int(found[1]):
        return Scope("steps", steps=int(found[1]))
    if found := _WITHIN.fullmatch(said):
        return Scope("floor", within=float(found[1]) / 100)
    if _SLOWER.fullmatch(said):
        return Scope("slower")
    raise InputError(f"{text!r} is no scope of an approval", USAGE)
