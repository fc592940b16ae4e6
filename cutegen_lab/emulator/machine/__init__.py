"""CTAs in lockstep: lanes, schedule, barriers, launch limits."""
