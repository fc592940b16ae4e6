"""Compares outputs with the float64 reference, within limits that follow from rounding."""
