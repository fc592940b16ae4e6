"""Where builds are executed: on a GPU, or by the emulator."""
