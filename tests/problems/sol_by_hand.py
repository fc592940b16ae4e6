"""Problems whose bytes and FLOPs were worked by hand, from their shapes alone."""

from __future__ import annotations

from dataclasses import dataclass

B, H, S, D = 2, 4, 64, 32  # batch, heads, positions, width of attention
QKV = f"q: bf16[{B},{H},{S},{D}], k: bf16[{B},{H},{S},{D}], v: bf16[{B},{H},{S},{D}]"
M, N, K = 128, 32, 64  # of products
X = M * K  # elements of most matrices below
SDPA = "F.scaled_dot_product_attention"


@dataclass(frozen=True)
class ByHand:
    """``text``: an expression, or the body of a reference. ``nbytes``: bytes of inputs that are read and of outputs.
    ``flops``: of products. ``unfused``: bytes that eager PyTorch moves, operator by operator; None if not worked."""

    name: str
    text: str
    inputs: str
    nbytes: int
    flops: int = 0
    unfused: int | None = None


ELEMENTWISE = [
    # x, y and the sum, 4 bytes each
    ByHand("sum of two", "x + y", "x: f32[128,64], y: f32[128,64]", 3 * 4 * X, unfused=3 * 4 * X),
    # mul, add, exp: each reads and writes X
    ByHand("chain", "torch.exp(x * 2 + 1)", "x: bf16[128,64]", 2 * 2 * X, unfused=3 * 2 * 2 * X),
    # the same operand twice is read once
    ByHand("square", "x * x", "x: f32[128,64]", 2 * 4 * X, unfused=2 * 4 * X),
    ByHand("bias", "x + b", "x: f32[128,64], b: f32[64]", 4 * (2 * X + 64), unfused=4 * (2 * X + 64)),
    # an expanded dimension is read once
    ByHand("expanded", "x * b.expand(128, 64)", "x: f32[128,64], b: f32[64]", 4 * (2 * X + 64),
           unfused=4 * (2 * X + 64)),
    ByHand("outer", "a[:, None] * b", "a: f32[64], b: f32[32]", 4 * (64 + 32 + 64 * 32),
           unfused=4 * (64 + 32 + 64 * 32)),
    ByHand("cast", "x.float()", "x: bf16[128,64]", (2 + 4) * X, unfused=(2 + 4) * X),
    ByHand("scalar operand", "x * s", "x: f32[128,64], s: f32[]", 4 * (2 * X + 1), unfused=4 * (2 * X + 1)),
    ByHand("scalars", "x + y", "x: f32[], y: f32[]", 3 * 4, unfused=3 * 4),
    ByHand("one element", "x * 3", "x: f32[1]", 2 * 4, unfused=2 * 4),
    # clone, then add_ reads and writes its first operand
    ByHand("in place", "y = x.clone()\ny += 1\nreturn y", "x: bf16[128,64]", 2 * 2 * X, unfused=2 * 2 * 2 * X),
    # the column is overwritten, not read
    ByHand("column overwritten", "y = x.clone()\ny[:, 0] = b\nreturn y", "x: f32[128,64], b: f32[128]",
           4 * (2 * X + 128), unfused=4 * (2 * X + 2 * 128)),
    # a view moves nothing
    ByHand("transposed copy", "x.t().contiguous()", "x: f32[128,64]", 2 * 4 * X, unfused=2 * 4 * X),
    ByHand("joined", "torch.cat([x, y], 1)", "x: f32[128,64], y: f32[128,64]", 4 * 4 * X, unfused=4 * 4 * X),
    ByHand("padded", "F.pad(x, (1, 1))", "x: f32[128,64]", 4 * (X + 128 * 66), unfused=4 * (X + 128 * 66)),
    # arange writes 64 int64; gt reads them and writes 64 bytes; masked_fill reads x and the mask
    ByHand("mask of positions", "x.masked_fill(torch.arange(64) > 9, 0.0)", "x: f32[128,64]", 2 * 4 * X,
           unfused=8 * 64 + (8 * 64 + 64) + (2 * 4 * X + 64)),
]  # fmt: skip

REDUCTIONS = [
    ByHand("row sums", "x.sum(-1)", "x: f32[128,64]", 4 * (X + 128), unfused=4 * (X + 128)),
    ByHand("mean of all", "x.mean()", "x: f32[128,64]", 4 * (X + 1), unfused=4 * (X + 1)),
    # values and int64 indices
    ByHand("row maxima", "x.max(-1)", "x: f32[128,64]", 4 * X + (4 + 8) * 128, unfused=4 * X + (4 + 8) * 128),
    ByHand("softmax", "torch.softmax(x, -1)", "x: bf16[128,64]", 2 * 2 * X, unfused=2 * 2 * X),
    # amax X+M, sub 2X+M, exp 2X, sum X+M, div 2X+M
    ByHand("softmax by steps", "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)",
           "x: f32[128,64]", 2 * 4 * X, unfused=4 * (8 * X + 4 * 128)),
    # a row's mean and deviation are written too
    ByHand("layer norm", "F.layer_norm(x, (64,), w, b)", "x: f32[128,64], w: f32[64], b: f32[64]",
           4 * (2 * X + 2 * 64), unfused=4 * (2 * X + 2 * 64 + 2 * 128)),
    ByHand("layer norm and gelu", "F.gelu(F.layer_norm(x, (64,), w, b))", "x: f32[128,64], w: f32[64], b: f32[64]",
           4 * (2 * X + 2 * 64), unfused=4 * (2 * X + 2 * 64 + 2 * 128 + 2 * X)),
    # one kernel on a GPU
    ByHand("rms norm", "F.rms_norm(x, (64,), w)", "x: bf16[128,64], w: bf16[64]", 2 * (2 * X + 64),
           unfused=2 * (2 * X + 64)),
    ByHand("group norm", "F.group_norm(x, 4, w, b)", "x: f32[2,8,16,16], w: f32[8], b: f32[8]",
           4 * (2 * 4096 + 2 * 8), unfused=4 * (2 * 4096 + 2 * 8 + 2 * 2 * 4)),
    ByHand("batch norm of inference", "F.batch_norm(x, m, v, w, b)",
           "x: f32[2,8,16,16], m: f32[8], v: f32[8], w: f32[8], b: f32[8]", 4 * (2 * 4096 + 4 * 8)),
    # log_softmax 2 · 6400; the loss reads one element a row, and writes the mean and the number of rows
    ByHand("cross entropy", "F.cross_entropy(x, t)", "x: f32[64,100], t: i64[64] below 100", 4 * 6400 + 8 * 64 + 4,
           unfused=2 * 4 * 6400 + 4 * 64 + 8 * 64 + 4 + 4),
    ByHand("running sum", "x.cumsum(-1)", "x: f32[128,64]", 2 * 4 * X, unfused=2 * 4 * X),
    # eager PyTorch writes int64 indices that the reference does not return
    ByHand("sort", "x.sort(-1).values", "x: f32[128,64]", 2 * 4 * X, unfused=(4 + 4 + 8) * X),
    ByHand("top four", "x.topk(4)", "x: f32[128,64]", 4 * X + (4 + 8) * 4 * 128, unfused=4 * X + (4 + 8) * 4 * 128),
    ByHand("average pooling", "F.avg_pool2d(x, 2)", "x: f32[2,8,16,16]", 4 * (4096 + 1024), unfused=4 * (4096 + 1024)),
    # and int64 indices, which eager PyTorch writes
    ByHand("maximum pooling", "F.max_pool2d(x, 2)", "x: f32[2,8,16,16]", 4 * (4096 + 1024),
           unfused=4 * (4096 + 1024) + 8 * 1024),
    ByHand("global pooling", "F.adaptive_avg_pool2d(x, 1)", "x: f32[2,8,16,16]", 4 * (4096 + 16),
           unfused=4 * (4096 + 16)),
]  # fmt: skip

MATRIX = M * K + K * N + M * N  # elements of a product
PRODUCTS = [
    ByHand("product", "a @ b", "a: bf16[128,64], b: bf16[64,32]", 2 * MATRIX, 2 * M * N * K, 2 * MATRIX),
    ByHand("product of float64", "a @ b", "a: f64[128,64], b: f64[64,32]", 8 * MATRIX, 2 * M * N * K, 8 * MATRIX),
    # a is one tensor: a kernel may read it once, the operator reads it as a and as its transpose
    ByHand("Gram matrix", "a @ a.t()", "a: f32[128,64]", 4 * (M * K + M * M), 2 * M * M * K, 4 * (2 * M * K + M * M)),
    ByHand("linear layer", "F.linear(x, w, c)", "x: f32[2,64,64], w: f32[32,64], c: f32[32]", 4 * (MATRIX + N),
           2 * M * N * K, 4 * (MATRIX + N)),
    ByHand("addmm", "torch.addmm(c, a, b)", "a: f32[128,64], b: f32[64,32], c: f32[128,32]", 4 * (MATRIX + M * N),
           2 * M * N * K, 4 * (MATRIX + M * N)),
    ByHand("batched", "torch.bmm(a, b)", "a: f32[3,128,64], b: f32[3,64,32]", 3 * 4 * MATRIX, 3 * 2 * M * N * K,
           3 * 4 * MATRIX),
    # the sum of 3 products
    ByHand("addbmm", "torch.addbmm(c, a, b)", "a: f32[3,128,64], b: f32[3,64,32], c: f32[128,32]",
           4 * (3 * (M * K + K * N) + 2 * M * N), 3 * 2 * M * N * K),
    ByHand("baddbmm", "torch.baddbmm(c, a, b)", "a: f32[3,128,64], b: f32[3,64,32], c: f32[3,128,32]",
           3 * 4 * (MATRIX + M * N), 3 * 2 * M * N * K),
    ByHand("einsum", "torch.einsum('bmk,bnk->bmn', a, b)", "a: f32[3,128,64], b: f32[3,32,64]", 3 * 4 * MATRIX,
           3 * 2 * M * N * K, 3 * 4 * MATRIX),
    ByHand("matrix by vector", "a @ v", "a: f32[128,64], v: f32[64]", 4 * (M * K + K + M), 2 * M * K,
           4 * (M * K + K + M)),
    ByHand("vector by matrix", "v @ a", "a: f32[64,128], v: f32[64]", 4 * (M * K + K + M), 2 * M * K,
           4 * (M * K + K + M)),
    ByHand("addmv", "torch.addmv(c, a, v)", "a: f32[128,64], v: f32[64], c: f32[128]", 4 * (M * K + K + 2 * M),
           2 * M * K),
    ByHand("dot product", "torch.dot(a, b)", "a: f32[64], b: f32[64]", 4 * (64 + 64 + 1), 2 * 64, 4 * (64 + 64 + 1)),
    # two products of x, which each reads; silu 2MN, multiplication 3MN
    ByHand("gated product", "F.silu(x @ w) * (x @ v)", "x: bf16[128,64], w: bf16[64,32], v: bf16[64,32]",
           2 * (MATRIX + K * N), 2 * (2 * M * N * K), 2 * (2 * MATRIX + 2 * M * N + 3 * M * N)),
    # for each of 128 rows and 8 results: a[n,i] · w[o,i,j] over 16 · 4 pairs
    ByHand("bilinear", "F.bilinear(a, b, w)", "a: f32[128,16], b: f32[128,4], w: f32[8,16,4]",
           4 * (128 * 16 + 128 * 4 + 8 * 16 * 4 + 128 * 8), 2 * 128 * 8 * 16 * 4),
    ByHand("grouped product", "torch._grouped_mm(a, b)", "a: bf16[4,128,64], b: bf16[4,64,32]", 4 * 2 * MATRIX,
           4 * 2 * M * N * K, 4 * 2 * MATRIX),
    # int32 sums
    ByHand("product of int8", "torch._int_mm(a, b)", "a: i8[128,64], b: i8[64,32]", M * K + K * N + 4 * M * N,
           2 * M * N * K, M * K + K * N + 4 * M * N),
    # casts read 1 byte and write 4
    ByHand("int8 in int32", "a.int() @ b.int()", "a: i8[128,64], b: i8[64,32]", M * K + K * N + 4 * M * N,
           2 * M * N * K, 5 * (M * K + K * N) + 4 * MATRIX),
    # two scales
    ByHand("product of fp8", "torch._scaled_mm(a, b.t(), s, t, out_dtype=torch.bfloat16)",
           "a: f8e4m3fn[128,64], b: f8e4m3fn[32,64], s: f32[], t: f32[]", M * K + K * N + 2 * M * N + 2 * 4,
           2 * M * N * K, M * K + K * N + 2 * M * N + 2 * 4),
    # counted as the reference computes it, though one column would do
    ByHand("a column of a product", "(a @ b)[:, :1]", "a: f32[128,64], b: f32[64,32]", 4 * (M * K + K * N + M),
           2 * M * N * K, 4 * MATRIX),
    # the product affects no output
    ByHand("unused product", "c = a @ b\nreturn a + 1", "a: f32[128,64], b: f32[64,32]", 4 * 2 * M * K, 0,
           4 * (MATRIX + 2 * M * K)),
]  # fmt: skip

HEADS = B * H * S * D  # elements of q
LSE = 4 * B * H * S  # bytes of the fused operator's logarithms of sums
ATTENTION = [
    # q·k and weights·v, for each pair: 2 · 2 · D
    ByHand("attention", f"{SDPA}(q, k, v)", QKV, 2 * 4 * HEADS, 4 * B * H * S * S * D, 2 * 4 * HEADS + LSE),
    # S (S + 1) / 2 pairs
    ByHand("causal attention", f"{SDPA}(q, k, v, is_causal=True)", QKV, 2 * 4 * HEADS,
           4 * B * H * (S * (S + 1) // 2) * D, 2 * 4 * HEADS + LSE),
    # a mask is data: all pairs. PyTorch first makes it 0 or -inf in bf16, from two scalars
    ByHand("masked attention", f"{SDPA}(q, k, v, m)", QKV + ", m: bool[64,64]", 2 * 4 * HEADS + S * S,
           4 * B * H * S * S * D, 2 * 4 * HEADS + LSE + 2 * S * S + (1 + 2) * S * S + 2 * 2 * 2),
    # S queries, 96 keys
    ByHand("cross attention", f"{SDPA}(q, k, v)", "q: bf16[2,4,64,32], k: bf16[2,4,96,32], v: bf16[2,4,96,32]",
           2 * (2 * HEADS + 2 * B * H * 96 * D), 4 * B * H * S * 96 * D),
    # four heads of queries share one of keys
    ByHand("grouped-query attention", f"{SDPA}(q, k, v, enable_gqa=True)",
           "q: bf16[2,4,64,32], k: bf16[2,1,64,32], v: bf16[2,1,64,32]", 2 * (2 * HEADS + 2 * HEADS // H),
           4 * B * H * S * S * D),
    # product 2·SD + SS, scale 2·SS, softmax 2·SS, product SS + 2·SD
    ByHand("attention by steps", "torch.softmax(q @ k.mT * 0.125, -1) @ v", QKV, 2 * 4 * HEADS, 4 * B * H * S * S * D,
           2 * (4 * HEADS + 6 * B * H * S * S)),
]  # fmt: skip

IMAGE = 2 * 8 * 16 * 16  # batch 2, 8 channels
CONVOLUTIONS = [
    # 14 positions, 3 taps of 8 channels, 12 filters
    ByHand("conv1d", "F.conv1d(x, w)", "x: f32[2,8,16], w: f32[12,8,3]", 4 * (2 * 8 * 16 + 12 * 8 * 3 + 2 * 12 * 14),
           2 * 2 * 14 * 12 * 8 * 3, 4 * (2 * 8 * 16 + 12 * 8 * 3 + 2 * 12 * 14)),
    # 16 · 16 positions: taps on padding count
    ByHand("conv2d", "F.conv2d(x, w, b, padding=1)", "x: f32[2,8,16,16], w: f32[12,8,3,3], b: f32[12]",
           4 * (IMAGE + 12 * 8 * 9 + 12 + 2 * 12 * 256), 2 * 2 * 256 * 12 * 8 * 9,
           4 * (IMAGE + 12 * 8 * 9 + 12 + 2 * 12 * 256)),
    ByHand("conv3d", "F.conv3d(x, w)", "x: f32[2,8,6,6,6], w: f32[12,8,3,3,3]",
           4 * (2 * 8 * 216 + 12 * 8 * 27 + 2 * 12 * 64), 2 * 2 * 64 * 12 * 8 * 27),
    # a channel has one filter: 9 taps
    ByHand("depthwise", "F.conv2d(x, w, groups=8)", "x: f32[2,8,16,16], w: f32[8,1,3,3]",
           4 * (IMAGE + 8 * 9 + 2 * 8 * 196), 2 * 2 * 196 * 8 * 9),
    # 2 groups: 4 channels for each of 12 filters
    ByHand("grouped", "F.conv2d(x, w, groups=2)", "x: f32[2,8,16,16], w: f32[12,4,3,3]",
           4 * (IMAGE + 12 * 4 * 9 + 2 * 12 * 196), 2 * 2 * 196 * 12 * 4 * 9),
    # 7 · 7 positions
    ByHand("strided", "F.conv2d(x, w, stride=2)", "x: f32[2,8,16,16], w: f32[12,8,3,3]",
           4 * (IMAGE + 12 * 8 * 9 + 2 * 12 * 49), 2 * 2 * 49 * 12 * 8 * 9),
    # a filter of 3 taps spans 5: 12 · 12 positions
    ByHand("dilated", "F.conv2d(x, w, dilation=2)", "x: f32[2,8,16,16], w: f32[12,8,3,3]",
           4 * (IMAGE + 12 * 8 * 9 + 2 * 12 * 144), 2 * 2 * 144 * 12 * 8 * 9),
    # each of 256 input positions adds 4 taps of 12 channels: 32 · 32 outputs
    ByHand("transposed", "F.conv_transpose2d(x, w, stride=2)", "x: f32[2,8,16,16], w: f32[8,12,2,2]",
           4 * (IMAGE + 8 * 12 * 4 + 2 * 12 * 1024), 2 * 2 * 256 * 8 * 12 * 4),
    # 2 groups: 6 of 12 channels for each input channel
    ByHand("transposed and grouped", "F.conv_transpose2d(x, w, stride=2, groups=2)",
           "x: f32[2,8,16,16], w: f32[8,6,2,2]", 4 * (IMAGE + 8 * 6 * 4 + 2 * 12 * 1024), 2 * 2 * 256 * 8 * 6 * 4),
]  # fmt: skip

MOVED = [
    # 16 random indices choose 15.87 different rows on average, with a standard deviation of 0.35: at least 14
    ByHand("embedding", "F.embedding(i, w)", "i: i64[16] below w[0], w: bf16[1000,64]", 8 * 16 + 2 * (14 + 16) * 64,
           unfused=8 * 16 + 2 * 2 * 16 * 64),
    # far more indices than rows: the whole table
    ByHand("small table", "F.embedding(i, w)", "i: i64[160] below w[0], w: bf16[10,64]",
           8 * 160 + 2 * 10 * 64 + 2 * 160 * 64, unfused=8 * 160 + 2 * 10 * 64 + 2 * 160 * 64),
    # sums of 16 rows; 64 indices choose 62.0 ± 1.36 different rows: at least 57
    ByHand("bag", "F.embedding_bag(i, w, mode='sum')", "i: i64[4,16] below w[0], w: f32[1000,64]",
           8 * 64 + 4 * 57 * 64 + 4 * 4 * 64),
    # four indices in each row choose 3.92 ± 0.27 different columns: at least 3
    ByHand("gather", "x.gather(1, i)", "x: f32[64,100], i: i64[64,4] below 100", 8 * 256 + 4 * 64 * 3 + 4 * 256,
           unfused=8 * 256 + 4 * 256 + 4 * 256),
    # rows of a gather whose index is expanded: 10 of 128 as in the next one, in each of 64 columns
    ByHand("gathered rows", "x.gather(0, i[:, None].expand(10, 64))", "x: f32[128,64], i: i64[10] below 128",
           8 * 10 + 4 * 7 * 64 + 4 * 640),
    # 9.62 ± 0.59 different rows: at least 7
    ByHand("chosen rows", "x[i]", "x: f32[128,64], i: i64[10] below 128", 8 * 10 + 4 * 7 * 64 + 4 * 640,
           unfused=8 * 10 + 2 * 4 * 640),
    ByHand("selected columns", "x.index_select(1, i)", "x: f32[64,128], i: i32[10] below 128",
           4 * 10 + 4 * 7 * 64 + 4 * 640),
    ByHand("distinct rows", "x[i]", "x: f32[128,64], i: i64[10] distinct below x[0]", 8 * 10 + 2 * 4 * 640),
    # elements of the whole tensor: 10 of 8192, 9.99 ± 0.08
    ByHand("taken", "x.take(i)", "x: f32[128,64], i: i64[10] below 8192", 8 * 10 + 4 * 9 + 4 * 10),
    # a copy of the indices with another dtype holds the same numbers
    ByHand("cast indices", "x[i.long()]", "x: f32[128,64], i: i32[10] below 128", 4 * 10 + 4 * 7 * 64 + 4 * 640),
    # computed indices may all be equal, and so may cumulative lengths; those below 4 are at most 4
    ByHand("computed indices", "x[i // 2]", "x: f32[128,64], i: i64[10] below 128", 8 * 10 + 4 * 64 + 4 * 640),
    ByHand("overwritten indices", "j = i.clone()\nj.clamp_(max=5)\nreturn x[j]",
           "x: f32[128,64], i: i64[10] below 128", 8 * 10 + 4 * 64 + 4 * 640),
    ByHand("lengths", "x[i]", "x: f32[128,64], i: i64[10] sorted to 127", 8 * 10 + 4 * 64 + 4 * 640),
    ByHand("few rows", "x[i]", "x: f32[128,64], i: i64[100] below 4", 8 * 100 + 4 * 4 * 64 + 4 * 6400),
    # a pair of indices chooses at least as many rows as the first of them
    ByHand("pairs of indices", "x[i, j]", "x: f32[128,2,64], i: i64[10] below 128, j: i64[10] below 2",
           2 * 8 * 10 + 4 * 7 * 64 + 4 * 640),
    # two gathers may read the same rows: only the larger one counts
    ByHand("two gathers", "x[i].sum(0) + x[j].sum(0)", "x: f32[128,64], i: i64[10] below 128, j: i64[2] below 128",
           8 * 12 + 4 * 7 * 64 + 4 * 64),
    # columns 0 to 2 and 2 to 4 of 8: five together
    ByHand("overlapping slices", "x[:, :3] + x[:, 2:5]", "x: f32[64,8]", 4 * 64 * (5 + 3)),
    ByHand("even and odd", "x[::2, 8:] * x[1::2, 8:]", "x: f32[64,16]", 4 * (64 * 8 + 32 * 8)),
    # zeros 6400; index_add reads them, the indices and x, and writes 6400
    ByHand("scatter", "torch.zeros(100, 64).index_add(0, i, x)", "i: i64[16] below 100, x: f32[16,64]",
           8 * 16 + 4 * (1024 + 6400), unfused=8 * 16 + 4 * (3 * 6400 + 1024)),
    # in place: index_add_ reads and writes 16 rows
    ByHand("scatter in place", "y = torch.zeros(100, 64)\ny.index_add_(0, i, x)\nreturn y",
           "i: i64[16] below 100, x: f32[16,64]", 8 * 16 + 4 * (1024 + 6400), unfused=8 * 16 + 4 * (6400 + 3 * 1024)),
    # a quarter of the columns
    ByHand("every fourth column", "x[:, ::4] * 2", "x: f32[128,64]", 4 * (X // 4 + X // 4), unfused=2 * 4 * X // 4),
    ByHand("two halves", "x[:, :32] * x[:, 32:]", "x: f32[128,64]", 4 * (X + X // 2), unfused=4 * (X + X // 2)),
    # the same half twice: read once by one kernel, twice by two
    ByHand("one half twice", "x[:, :32].exp() + x[:, :32].sin()", "x: f32[128,64]", 4 * (X // 2 + X // 2),
           unfused=4 * 7 * X // 2),
    # overlapping parts: no more than all of x
    ByHand("neighbours", "x[1:] + x[:-1]", "x: f32[65]", 4 * (65 + 64), unfused=4 * (64 + 64 + 64)),
    ByHand("input that is not read", "x + 1", "x: f32[64], y: f32[1000]", 2 * 4 * 64, unfused=2 * 4 * 64),
    ByHand("input of unused work", "z = y.exp()\nreturn x + 1", "x: f32[64], y: f32[1000]", 2 * 4 * 64,
           unfused=2 * 4 * 64 + 2 * 4 * 1000),
    # a kernel copies it; eager PyTorch returns the tensor itself
    ByHand("output that is an input", "x", "x: f32[64]", 2 * 4 * 64, unfused=0),
    ByHand("several outputs", "x + 1, x.sum(-1)", "x: bf16[128,64]", 2 * (2 * X + 128), unfused=2 * (3 * X + 128)),
    # int32 results
    ByHand("integers", "x * y", "x: i32[128,64], y: i8[128,64]", (4 + 1 + 4) * X, unfused=(4 + 1 + 4) * X),
    ByHand("to fp8", "x.to(torch.float8_e4m3fn)", "x: bf16[128,64]", (2 + 1) * X, unfused=(2 + 1) * X),
]  # fmt: skip

PROBLEMS = [*ELEMENTWISE, *REDUCTIONS, *PRODUCTS, *ATTENTION, *CONVOLUTIONS, *MOVED]
