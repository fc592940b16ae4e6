"""Static plots of a run's page: SVG without scripts, each with its numbers as a table."""

from cutegen_lab.views.plots.checks import CheckMatrix, check_matrix
from cutegen_lab.views.plots.picture import Picture
from cutegen_lab.views.plots.pictures import of_candidate, of_run

__all__ = ["CheckMatrix", "Picture", "check_matrix", "of_candidate", "of_run"]
