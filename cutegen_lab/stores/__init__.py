"""Where runs are kept: one SQLite file, append-only (knows core alone)."""
