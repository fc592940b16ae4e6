"""Rules for ATen operators. Importing this registers them."""

from cutegen_lab.templates.frontend.operators import (
    activations,
    arithmetic,
    losses,
    norms,
    pooling,
    products,
    reductions,
    shapes,
)

__all__ = ["activations", "arithmetic", "losses", "norms", "pooling", "products", "reductions", "shapes"]
