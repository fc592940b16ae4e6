"""Performance model: from a kernel's counters to a predicted time and its limiter (occupancy, traffic, waits, cost
terms), and how far it may be off."""

from cutegen_lab.perfmodel.error_band import error_band
from cutegen_lab.perfmodel.occupancy import Occupancy, occupancy
from cutegen_lab.perfmodel.predict import MODEL, Prediction, predict_launch, predict_plan

__all__ = ["MODEL", "Occupancy", "Prediction", "error_band", "occupancy", "predict_launch", "predict_plan"]
