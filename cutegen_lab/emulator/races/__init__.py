"""Race detection: vector clocks, and the last accesses to each byte of shared and global memory."""
