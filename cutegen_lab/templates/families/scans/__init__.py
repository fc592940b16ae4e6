"""Scans (cumsum, cumprod, from either end) along rows and down columns: each element is read once and written once."""
