"""A run for display: one versioned JSON shape, and its text and HTML forms. Imports only core."""
