"""The life of a run as a pure state machine, and the drivers that perform its steps (imports core only)."""

from cutegen_lab.loop.effects import AskReview, Check, Compile, Effect, Finish, Generate, Profile, Time
from cutegen_lab.loop.machine import advance, fold, next_step

__all__ = [
    "AskReview",
    "Check",
    "Compile",
    "Effect",
    "Finish",
    "Generate",
    "Profile",
    "Time",
    "advance",
    "fold",
    "next_step",
]
