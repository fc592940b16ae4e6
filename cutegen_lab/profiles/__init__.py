"""A run's profile: all its numbers in one table, and the data of plots in notebook and widget."""
