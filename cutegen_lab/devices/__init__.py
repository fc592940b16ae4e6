"""Devices that execute builds: a GPU, or the emulator."""
