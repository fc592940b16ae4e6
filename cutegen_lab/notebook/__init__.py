"""The workbench in a notebook: the ``%%cutegen`` magics, the refinement widget, the run object they give."""
