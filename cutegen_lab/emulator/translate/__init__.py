"""From PTX instructions to Python: control flow, registers, and the writer that opcodes use."""
