"""PyTorch's operators by what they do to rounding errors and to non-finite values."""

from __future__ import annotations

from typing import Any

# Operators that round nothing: they choose, copy, compare or change a sign.
CHOOSING = {
    "_to_copy", "_unsafe_index", "abs", "amax", "amin", "arange", "argmax", "argmin", "cat", "ceil", "clamp",
    "clamp_max", "clamp_min", "clone", "constant_pad_nd", "copy", "cummax", "cummin", "diagonal_copy", "embedding",
    "empty", "empty_like", "eye", "fill", "flip", "floor", "fmax", "fmin", "full", "full_like", "gather", "index",
    "index_put", "index_select", "kthvalue", "lift_fresh_copy", "masked_fill", "max", "max_pool2d_with_indices",
    "maximum", "median", "min", "minimum", "nan_to_num", "neg", "new_empty", "new_full", "new_ones", "new_zeros",
    "ones", "ones_like", "permute_copy", "relu", "repeat", "roll", "round", "scalar_tensor", "scatter", "sign",
    "slice_scatter", "sort", "stack", "topk", "tril", "triu", "trunc", "where", "zeros", "zeros_like",
}  # fmt: skip
# Operators that order numbers or return an index: equal numbers may be exchanged, also +0 and −0.
RANKING = {"argmax", "argmin", "argsort", "cummax", "cummin", "kthvalue", "median", "mode", "nanmedian", "sort", "topk"}
# Operators that compare: they read unperturbed values.
COMPARING = {
    "eq", "ge", "gt", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "le", "lt", "ne", "signbit",
}  # fmt: skip
EXACT = CHOOSING | COMPARING
# Operators that only move numbers and keep the sign of a zero.
MOVING = {
    "_to_copy", "_unsafe_index", "cat", "clone", "constant_pad_nd", "copy", "diagonal_copy", "embedding", "empty",
    "flip", "full", "gather", "index", "index_select", "lift_fresh_copy", "masked_fill", "permute_copy", "repeat",
    "roll", "scalar_tensor", "stack", "where", "zeros",
}  # fmt: skip
# Operators whose integers wrap around: any width of at least the result's gives the same low bits.
WRAPPING = {"_to_copy", "add", "clone", "mul", "rsub", "sub"}
ADDING = {"add", "rsub", "sub"}
# Operators that distinguish infinities from numbers; comparisons with an infinity do too.
TELLS_INFINITY = {"isfinite", "isinf", "isneginf", "isposinf", "logsumexp", "nan_to_num"}
COMPARISONS = COMPARING - TELLS_INFINITY - {"isnan", "signbit"}
# Operators that sum products.
PRODUCTS = {"addmm", "addmv", "baddbmm", "bmm", "convolution", "dot", "mm", "mv"}
# Attention as one operator: products of its first three operands.
ATTENTION = {
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
}  # fmt: skip
# Operators that give integers for integers, in any order of summation.
SUMS = PRODUCTS | {"add", "cumsum", "mul", "rsub", "sub", "sum"}


# Operators for which no correct formula gives NaN instead of an infinity.
PLAIN = CHOOSING | {"add", "cumsum", "div", "mul", "rsub", "sub", "sum"}
# Also these, if no element is a sum: a norm may be scaled by its largest term, and ∞ / ∞ is NaN.
PLAIN_ALONE = PLAIN | {"reciprocal", "rsqrt", "sqrt"}
# Also functions of one number, of which correct formulas may lose small results, but no infinities.
INFINITE_ALONE = PLAIN_ALONE | {
    "elu", "exp", "exp2", "expm1", "gelu", "hardswish", "leaky_relu", "log", "log10", "log1p", "log2", "mish", "silu",
    "softplus", "square",
}  # fmt: skip
# Operators whose result depends on every operand: zero times NaN or infinity is NaN.
STRICT = {
    "_to_copy", "add", "addmm", "addmv", "baddbmm", "bmm", "cat", "clone", "div", "dot", "embedding", "flip", "gather",
    "index", "index_select", "mean", "mm", "mul", "mv", "neg", "permute_copy", "repeat", "rsub", "stack", "sub", "sum",
}  # fmt: skip
# Elementwise operators with a small relative error.
RELATIVE = {
    "_softmax", "_to_copy", "abs", "clone", "div", "exp", "exp2", "mul", "neg", "pow", "reciprocal", "rsqrt", "sqrt",
    "square",
}  # fmt: skip
# Elementwise operators, and softmax, with known error bounds for small results (:mod:`approximate`). Operators with
# jumps are not among them, except comparisons of unrounded numbers: a result next to a jump may be on either side.
OF_KNOWN_LOSS = RELATIVE | MOVING | COMPARING | {
    "_prelu_kernel", "add", "amax", "amin", "arange", "bitwise_and", "bitwise_not", "bitwise_or", "clamp", "clamp_max",
    "clamp_min", "cos", "elu", "empty_like", "erf", "expm1", "full_like", "gelu", "hardsigmoid", "hardswish",
    "hardtanh", "leaky_relu", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "maximum",
    "minimum", "mish", "ones", "ones_like", "relu", "rsub", "sigmoid", "silu", "sin", "softplus", "sub", "tanh",
    "tril", "triu", "zeros_like",
}  # fmt: skip
# Losses: functions of two numbers whose results may be summed.
LOSSES = {"binary_cross_entropy", "huber_loss", "mse_loss", "smooth_l1_loss", "soft_margin_loss"}
ACCURATE_NEAR_ZERO = {"log1p", "expm1"}
# Arithmetic, roots, sums and norms, whose rounding errors have a mean of zero in every correct formula. Instructions
# that approximate an exponential or tanh may be off in one direction.
UNBIASED = PRODUCTS | STRICT | CHOOSING | COMPARING | {
    "_fused_rms_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "linalg_vector_norm",
    "native_batch_norm", "native_group_norm", "native_layer_norm", "pow", "reciprocal", "rsqrt", "sqrt", "square",
    "std", "std_mean", "var", "var_mean",
}  # fmt: skip
# Operators of several steps, which are decomposed.
DECOMPOSED = {
    "_fused_rms_norm", "_log_softmax", "_native_batch_norm_legit", "_softmax", "gelu", "logsumexp", "native_batch_norm",
    "native_group_norm", "native_layer_norm", "silu",
}  # fmt: skip


def aliases(func: Any) -> bool:
    """Whether an ATen operator returns a view of an argument, or writes to one."""
    return any(r.alias_info is not None for r in func._schema.returns)
