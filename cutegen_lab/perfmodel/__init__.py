"""Performance model: predicts a kernel's time, its limiter and an error band from counters (occupancy, traffic, waits,
cost terms)."""

from cutegen_lab.perfmodel.error_band import error_band
from cutegen_lab.perfmodel.occupancy import Occupancy, occupancy
from cutegen_lab.perfmodel.predict import MODEL, Prediction, predict_launch, predict_plan

__all__ = ["MODEL", "Occupancy", "Prediction", "error_band", "occupancy", "predict_launch", "predict_plan"]
