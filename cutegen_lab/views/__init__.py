"""A run as people see it: one versioned JSON shape, its text and HTML forms. Sits on core alone."""
