"""Plots of a run's profile: a table of plots, each a pure function of the run's rows."""

from cutegen_lab.notebook.plots.catalogue import PLOTS, Subject, draw, subject_of
from cutegen_lab.notebook.plots.plot import Plot

__all__ = ["PLOTS", "Plot", "Subject", "draw", "subject_of"]
