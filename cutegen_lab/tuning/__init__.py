"""Searches for the fastest config: spaces of configs, ask and tell, evaluations on disk."""

from cutegen_lab.tuning.evaluations import Evaluation, Evaluations, Place
from cutegen_lab.tuning.search import Patience, Search, replay
from cutegen_lab.tuning.space import Space, Tunables, key, read_tunables

__all__ = [
    "Evaluation",
    "Evaluations",
    "Patience",
    "Place",
    "Search",
    "Space",
    "Tunables",
    "key",
    "read_tunables",
    "replay",
]
