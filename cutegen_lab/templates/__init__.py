"""Parameterised CuTe kernels: a reference as an expression graph, and the families that write modules for it."""
