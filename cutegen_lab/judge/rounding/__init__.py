"""Effect of rounding on references: random perturbation, re-rounded PyTorch results, TF32."""
