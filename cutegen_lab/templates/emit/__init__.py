"""Text of modules: built from kernel files (``bundle``), and specialised for one config."""
