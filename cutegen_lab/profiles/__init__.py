"""A run's profile: every number of it in one table, and what the plots of notebook and widget are drawn from."""
