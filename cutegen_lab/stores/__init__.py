"""Stores runs: one append-only SQLite file (imports core only)."""
