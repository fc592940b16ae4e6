"""The nouns of the workbench as frozen values, and the protocols its parts meet at (standard library only)."""
