"""The class of a problem's work, from the operators of its exported graph: it decides what guidance a model gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import GpuSpec

if TYPE_CHECKING:
    import torch

WorkClass = Literal[
    "scan", "attention", "convolution", "matmul", "memory-bound product", "stencil", "row reduction",
    "column reduction", "elementwise", "other",
]  # fmt: skip

_SCANS = frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"})
_CONVOLUTIONS = frozenset({f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)} | {"convolution"})
_PRODUCTS = frozenset(
    {"matmul", "mm", "bmm", "mv", "dot", "addmm", "addbmm", "baddbmm", "addmv", "einsum", "linear", "outer",
     "tensordot", "bilinear"}
)  # fmt: skip
_WINDOWS = frozenset(
    f"{adaptive}{kind}_pool{n}d" for adaptive in ("", "adaptive_") for kind in ("avg", "max") for n in (1, 2, 3)
) | {"max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices", "unfold"}
_BY_DIM = frozenset(  # reductions along the dimensions of their argument `dim`; all without it
    {"softmax", "log_softmax", "sum", "nansum", "mean", "nanmean", "amax", "amin", "aminmax", "max", "min", "prod",
     "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "argmax", "argmin", "topk", "sort", "argsort",
     "median", "kthvalue", "logsumexp", "all", "any", "count_nonzero", "cosine_similarity"}
)  # fmt: skip
_ALONG_ROWS = frozenset(
    {"layer_norm", "rms_norm", "group_norm", "instance_norm", "cross_entropy_loss", "nll_loss", "nll_loss_nd",
     "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy", "trace"}
)  # fmt: skip
_BATCH_NORMS = frozenset({"batch_norm", "native_batch_norm", "_native_batch_norm_legit"})
EXAMPLES: dict[WorkClass, tuple[str, str]] = {
    "scan": ("scan", "a cumulative sum"),
    "attention": ("attention", "causal attention by mma.sync"),
    "convolution": ("convolution", "a 3 x 3 convolution by mma.sync"),
    "matmul": ("matmul", "a product by TMA and wgmma"),
    "memory-bound product": ("memory_bound_product", "a linear layer for few rows"),
    "stencil": ("stencil", "average pooling"),
    "row reduction": ("row_reduction", "a softmax"),
    "column reduction": ("column_reduction", "a mean over rows"),
    "elementwise": ("elementwise", "the gate of a SwiGLU"),
    "other": ("row_reduction", "a softmax"),
}
"""The example for each class: its file in ``prompts/examples``, and what it computes."""
MMA_EXAMPLE = ("matmul_mma", "a product by mma.sync, for any sizes and row pitches")
"""The example in place of that for "matmul" where TMA and wgmma do not suit."""


def work_class(problem: Problem, gpu: GpuSpec) -> WorkClass:
    """Class of work of ``problem``'s first workload on ``gpu``; "other" if torch.export cannot read the reference."""
    from cutegen_lab.templates.frontend.reader import Programs  # imports PyTorch

    try:
        calls = Programs(problem).of(problem.workload.name).calls
    except CutegenError:  # a hint is no reason to stop a run
        return "other"
    names = [_name(node) for node in calls]
    if not _SCANS.isdisjoint(names):
        return "scan"
    if "scaled_dot_product_attention" in names or _softmax_between_products(names):
        return "attention"
    if convolutions := [node for node in calls if _name(node) in _CONVOLUTIONS]:
        return "stencil" if all(map(_by_channel, convolutions)) else "convolution"
    if not _PRODUCTS.isdisjoint(names):
        return "memory-bound product" if _needs_no_tensor_cores(problem, gpu) else "matmul"
    if not _WINDOWS.isdisjoint(names):
        return "stencil"
    reductions = [along for node in calls if (along := _reduces_rows(node)) is not None]
    if not reductions:
        return "elementwise"
    return "row reduction" if any(reductions) else "column reduction"


def example_for(kind: WorkClass, problem: Problem, gpu: GpuSpec) -> tuple[str, str]:
    """The example for ``problem``, of class ``kind``, on ``gpu``: its file and what it computes."""
    return MMA_EXAMPLE if kind == "matmul" and not _suits_wgmma(problem, gpu) else EXAMPLES[kind]


def _suits_wgmma(problem: Problem, gpu: GpuSpec) -> bool:
    """Whether the GPU has TMA and wgmma, all matrices fill a tile of 64 rows, and TMA can copy their rows (which start
    at multiples of 16 bytes)."""
    matrices = [spec for workload in problem.workloads for spec in workload.inputs if len(spec.shape) > 1]
    return gpu.arch == "sm_90a" and all(
        math.prod(spec.shape[:-1]) >= 64
        and all(step * spec.dtype.itemsize % 16 == 0 for step in spec.stride if step > 1)
        for spec in matrices
    )


def _softmax_between_products(names: Sequence[str]) -> bool:
    products = [at for at, name in enumerate(names) if name in _PRODUCTS]
    return len(products) > 1 and "softmax" in names[products[0] : products[-1]]


def _by_channel(convolution: torch.fx.Node) -> bool:
    """Whether each channel has a filter of its own (a depthwise convolution)."""
    groups: int = _arguments(convolution).get("groups", 1)
    filters: int = convolution.args[1].meta["val"].shape[0]
    return groups > 1 and groups == filters


def _needs_no_tensor_cores(problem: Problem, gpu: GpuSpec) -> bool:
    """Whether the other cores multiply faster than the tensors can be read and written once."""
    return problem.flops / gpu.flops[DType.F32] <= problem.workload.compulsory_bytes / gpu.dram_bytes_per_s


def _name(node: torch.fx.Node) -> str:
    """``softmax`` of ``aten.softmax.int``."""
    parts = str(node.target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _reduces_rows(node: torch.fx.Node) -> bool | None:
    """Whether the last dimension is among those that the operator reduces; None if it is no reduction."""
    name, arguments = _name(node), _arguments(node)
    if name in _ALONG_ROWS:
        return True
    if name not in _BY_DIM | _BATCH_NORMS or "other" in arguments:  # the maximum of two tensors reduces nothing
        return None
    rank = node.args[0].meta["val"].dim()
    if name in _BATCH_NORMS:  # which reduce all dimensions but the second
        return rank > 2 if arguments.get("training") else None
    dims = arguments.get("dim")
    given = [dims] if isinstance(dims, int) else list(dims or ())
    return not given or any(dim % max(rank, 1) == rank - 1 for dim in given)


def _arguments(node: torch.fx.Node) -> dict[str, Any]:
    """Arguments by the names of the operator's schema."""
    schema = getattr(node.target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema else []
    return dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
