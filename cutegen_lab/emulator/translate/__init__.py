"""Translation of PTX to Python: control flow, register allocation, and the code writer of opcodes."""
