"""Template kernels compared with PyTorch, torch.compile, cuBLAS, quack and a plain copy, in one run on one GPU.

Each family is measured with its default config, which is what a user gets before tuning. ``prepare`` compiles the
kernels into a folder of plain data (it needs the DSL and no GPU); ``measure`` times them (it needs a GPU and PyTorch,
not the DSL). The machine with the GPU therefore needs no compiler.
"""
