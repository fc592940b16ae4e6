"""Core types as frozen dataclasses, and the protocols between the parts (standard library only)."""
