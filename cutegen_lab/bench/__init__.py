"""Template kernels beside PyTorch, torch.compile, cuBLAS, quack and a plain copy, in one run on one GPU.

What is compared is a family's default config: what a user gets before anything was tuned. Kernels are compiled first
(``prepare``: the DSL, no GPU) into a folder of plain data, which is then timed (``measure``: a GPU and PyTorch, no
DSL), so that the machine with the GPU need not have the compiler.
"""
