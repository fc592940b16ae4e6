"""Checks of a build: on the device, on the emulator, in other processes, with sanitizers."""
