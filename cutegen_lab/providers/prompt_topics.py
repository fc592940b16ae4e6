"""Classifies the work of a problem by the operators of its exported graph, to choose hints for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.problem import Problem

if TYPE_CHECKING:
    import torch

WorkClass = Literal["scan", "matmul", "pooling", "row reduction", "column reduction", "elementwise", "other"]

_OPERATORS: tuple[tuple[WorkClass, frozenset[str]], ...] = (  # one of these decides, the first class first
    ("scan", frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"})),
    (
        "matmul",
        frozenset(
            {"matmul", "mm", "bmm", "mv", "dot", "addmm", "addbmm", "baddbmm", "addmv", "einsum", "linear", "outer",
             "tensordot", "scaled_dot_product_attention", "conv1d", "conv2d", "conv3d", "convolution",
             "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "bilinear"}
        ),
    ),
    (
        "pooling",
        frozenset(
            f"{adaptive}{kind}_pool{n}d" for adaptive in ("", "adaptive_") for kind in ("avg", "max") for n in (1, 2, 3)
        ) | {"max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices", "unfold"},
    ),
)  # fmt: skip
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
HINTS: dict[WorkClass, str] = {
    "scan": (
        "A scan: give each thread a contiguous run, scan runs within the warp (shuffle_sync_up), then across warps\n"
        "through shared memory, then add each run's offset."
    ),
    "matmul": (
        "Matrix products: tile through shared memory with several stages in flight; tensor cores decide the speed.\n"
        "What else the reference does belongs in the prologue or epilogue."
    ),
    "pooling": (
        "A stencil: windows of neighbouring outputs overlap. Neighbouring threads take neighbouring outputs; load\n"
        "each row of the input once, in wide loads, and use it for every window that it is in."
    ),
    "row reduction": (
        "A row reduction: read each row once, keep it in registers, reduce within the thread, the warp, then the\n"
        "block; fuse what comes before and after."
    ),
    "column reduction": (
        "A column reduction: neighbouring threads take neighbouring columns, in 16-byte loads that fill 128-byte\n"
        "lines; each thread reduces its share of the rows in registers, the block combines shares in shared memory.\n"
        "Where the columns alone make too few blocks for the GPU, split the rows too."
    ),
    "elementwise": (
        "Elementwise or data movement: 16-byte loads and stores, several independent vectors per thread, all loads\n"
        "before the first use; broadcast operands are small and stay in cache."
    ),
    "other": "Read each input once, in 16-byte loads, and keep several independent loads in flight per thread.",
}


def work_class(problem: Problem) -> WorkClass:
    """Class of work of ``problem``'s first workload; "other" if torch.export cannot read the reference."""
    from cutegen_lab.templates.frontend.reader import Programs  # imports PyTorch

    try:
        calls = Programs(problem).of(problem.workload.name).calls
    except CutegenError:  # a hint is no reason to stop a run
        return "other"
    names = {_name(node) for node in calls}
    for kind, known in _OPERATORS:
        if names & known:
            return kind
    reductions = [along for node in calls if (along := _reduces_rows(node)) is not None]
    if not reductions:
        return "elementwise"
    return "row reduction" if any(reductions) else "column reduction"


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
