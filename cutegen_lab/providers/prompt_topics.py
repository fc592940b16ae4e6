"""Classifies a reference by the functions that it calls, to choose hints for a model."""

from __future__ import annotations

import ast
from typing import Literal

from cutegen_lab.core.syntax import parse

WorkClass = Literal["scan", "matmul", "row reduction", "elementwise"]

_NAMES: tuple[tuple[WorkClass, frozenset[str]], ...] = (
    ("scan", frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"})),
    (
        "matmul",
        frozenset(
            {"matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "linear", "Linear", "conv1d", "conv2d", "conv3d",
             "Conv1d", "Conv2d", "Conv3d", "scaled_dot_product_attention", "outer", "tensordot"}
        ),
    ),
    (
        "row reduction",
        frozenset(
            {"softmax", "log_softmax", "Softmax", "LogSoftmax", "sum", "mean", "amax", "amin", "max", "min", "prod",
             "var", "std", "var_mean", "norm", "normalize", "vector_norm", "layer_norm", "LayerNorm", "rms_norm",
             "RMSNorm", "group_norm", "GroupNorm", "argmax", "argmin", "topk", "logsumexp", "cross_entropy", "all",
             "any"}
        ),
    ),
)  # fmt: skip
HINTS: dict[WorkClass, str] = {
    "scan": (
        "A scan: give each thread a contiguous run, scan runs within the warp (shuffle_sync_up), then across warps\n"
        "through shared memory, then add each run's offset."
    ),
    "matmul": (
        "Matrix products: tile through shared memory with several stages in flight; tensor cores decide the speed.\n"
        "What else the reference does belongs in the prologue or epilogue."
    ),
    "row reduction": (
        "A row reduction: read each row once, keep it in registers, reduce within the thread, the warp, then the\n"
        "block; fuse what comes before and after."
    ),
    "elementwise": (
        "Elementwise or data movement: 16-byte loads and stores, several independent vectors per thread, all loads\n"
        "before the first use; broadcast operands are small and stay in cache."
    ),
}


def work_class(source: str) -> WorkClass:
    """Class of work, by the names of called functions and methods and by ``@``. A text that does not parse counts as
    elementwise."""
    try:
        nodes = list(ast.walk(parse(source)))
    except SyntaxError:
        return "elementwise"
    names = {n.func.attr for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    names |= {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    product = any(isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, ast.MatMult) for n in nodes)
    for kind, known in _NAMES:
        if names & known or (kind == "matmul" and product):
            return kind
    return "elementwise"
