"""Scans (cumsum, cumprod, from either end) along rows and down columns: one read and one write of memory."""
