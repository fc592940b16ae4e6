"""Rules for ATen operators that are more than one operation. Importing this registers them."""

from cutegen_lab.templates.operators import activations, arithmetic, norms, products, reductions, shapes

__all__ = ["activations", "arithmetic", "norms", "products", "reductions", "shapes"]
