"""Scans (cumsum, cumprod, from either end) in one reading and one writing of memory: along rows and down columns."""
