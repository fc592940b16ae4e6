"""A set of problems, each an unattended run, as one table."""
