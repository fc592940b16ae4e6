"""Makes modules' text: from kernel files (``bundle``), and for one config, whose parameters become constants."""
