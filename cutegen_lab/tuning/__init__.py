"""What a kernel's counts mean for its time on a GPU, and the search for the config with the least of it."""

from cutegen_lab.tuning.evaluations import Evaluation, Evaluations, Place
from cutegen_lab.tuning.occupancy import Occupancy, occupancy
from cutegen_lab.tuning.predict import MODEL, Prediction, predict_launch, predict_plan
from cutegen_lab.tuning.search import Patience, Search, replay
from cutegen_lab.tuning.space import Space, Tunables, key, read_tunables

__all__ = [
    "MODEL",
    "Evaluation",
    "Evaluations",
    "Occupancy",
    "Patience",
    "Place",
    "Prediction",
    "Search",
    "Space",
    "Tunables",
    "key",
    "occupancy",
    "predict_launch",
    "predict_plan",
    "read_tunables",
    "replay",
]
