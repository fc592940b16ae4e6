"""Races: vector clocks, and who touched which byte of shared and global memory."""
