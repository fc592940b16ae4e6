"""What a kernel's counts mean for its time on a GPU."""

from cutegen_lab.tuning.occupancy import Occupancy, occupancy
from cutegen_lab.tuning.predict import MODEL, Prediction, predict_launch, predict_plan

__all__ = ["MODEL", "Occupancy", "Prediction", "occupancy", "predict_launch", "predict_plan"]
