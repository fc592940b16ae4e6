"""The workbench in a notebook: the ``%%cutegen`` magics, the widget, and the run object."""
