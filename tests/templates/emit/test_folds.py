"""Each fold on a tiny text: what is written, and that it computes what the module did."""

from __future__ import annotations

import pytest

from cutegen_lab.templates.emit.observe import Probe
from cutegen_lab.templates.emit.refusal import CannotSpecialise
from cutegen_lab.templates.emit.specialise import specialise
from tests.templates.emit.folding import HEAD, folded, launch_of, module

VEC = ", vec: cutlass.Constexpr = 8"


def test_a_branch_whose_test_is_known_goes_and_its_comments_stay() -> None:
    text = folded(module("""
# before
if cutlass.const_expr(vec > 4):  # behind
    # inside
    note(vec)  # beside
else:
    note(0)
note(x.shape[0])
""", VEC))  # fmt: skip
    assert launch_of(text) == [
        "    # before", "    # behind", "    # inside", "    note(VEC)  # beside", "    note(x.shape[0])",
    ]  # fmt: skip
    assert "\nVEC = 8\n" in text and "TUNABLE" not in text and "def launch(x, note, stream):" in text


@pytest.mark.parametrize(("vec", "left"), [(8, "note(1)"), (4, "note(2)"), (2, "note(3)")])
def test_a_chain_of_branches_leaves_the_one_that_is_taken(vec: int, left: str) -> None:
    source = module("if vec > 4:\n    note(1)\nelif vec > 2:\n    note(2)\nelse:\n    note(3)", VEC)
    assert launch_of(folded(source, vec=vec)) == [f"    {left}"]


def test_of_a_chain_with_an_open_test_the_rest_is_folded() -> None:
    source = module("if x.shape[0] > 4:\n    note(1)\nelif vec > 2:\n    note(2)\nelse:\n    note(3)", VEC)
    assert launch_of(folded(source, 3, 9)) == [
        "    if x.shape[0] > 4:", "        note(1)", "    else:", "        note(2)",
    ]  # fmt: skip


def test_what_workloads_do_not_agree_on_stays() -> None:
    source = module("n = x.shape[0]\nif cutlass.const_expr(n % 8 == 0):\n    note(n)\nelse:\n    note(-n)")
    assert "if cutlass.const_expr(n % 8 == 0):" in folded(source, 16, 17)
    assert launch_of(folded(source, 16, 24)) == ["    n = x.shape[0]", "    note(n)"]


def test_a_conditional_expression_keeps_its_parentheses_only_where_they_matter() -> None:
    text = folded(module("n = x.shape[0]\nnote((n + 1 if vec > 4 else n) * 2, n if vec > 4 else 0)", VEC))
    assert launch_of(text)[-1] == "    note((n + 1) * 2, n)"


@pytest.mark.parametrize(
    "call", ["cutlass.range(steps, unroll=1)", "cutlass.range_constexpr(steps)", "range(0, steps)"]
)
def test_a_loop_of_one_trip_is_its_body(call: str) -> None:
    source = module(f"n = x.shape[0]\nsteps = (n + 63) // 64\nfor i in {call}:\n    note(n + i * 64)\n    note(i)")
    assert launch_of(folded(source, 8, 64)) == ["    n = x.shape[0]", "    note(n)", "    note(0)"]
    assert "for i in" in folded(source, 8, 65)


def test_a_loop_of_no_trip_goes_and_one_that_is_left_early_stays() -> None:
    assert launch_of(folded(module("for i in cutlass.range_constexpr(x.shape[0] - 8):\n    note(i)\nnote(7)"))) == [
        "    note(7)"
    ]
    assert "for i in" in folded(module("for i in range(1):\n    if x.shape[0] > 3:\n        break\n    note(i)"), 2, 9)


def test_names_that_a_loop_carries_keep_the_other_loops() -> None:
    """The DSL would take ``start`` for a value that comes into the loop from before it."""
    source = module("""
steps = x.shape[0] // 8
if cutlass.const_expr(steps == 1):
    for step in cutlass.range(steps, unroll=1):
        start = step * 8
        note(start)
for step in cutlass.range(steps, unroll=1):
    start = step * 8
    note(start)
""")
    assert folded(source, 8, 16).count("for step in cutlass.range(") == 2


def test_a_parameter_with_one_value_leaves_the_function_and_its_calls() -> None:
    source = HEAD + """

@cute.jit
def scaled(note, x, threads: cutlass.Constexpr, cluster: cutlass.Constexpr, fast: cutlass.Constexpr):
    if cutlass.const_expr(fast):
        note(x * threads // cluster)
    else:
        note(x)


@cute.jit
def launch(x, note, stream, threads: cutlass.Constexpr = 128, cluster: cutlass.Constexpr = 1):
    scaled(note, x.shape[0], threads, cluster, True)
"""  # fmt: skip
    text = folded(source, 8, 9)
    assert "def scaled(note, x):\n    note(x * THREADS)\n" in text and "    scaled(note, x.shape[0])\n" in text


def test_a_parameter_that_is_assigned_or_long_is_bound_at_the_top() -> None:
    source = (
        HEAD
        + '''

def tiled(note, x, tile_shape: cutlass.Constexpr, rows: cutlass.Constexpr):
    """Notes tiles."""
    tile_m, tile_n = tile_shape
    rows = math.gcd(rows, x)
    note(tile_m, tile_n, tile_shape, rows)


def launch(x, note, stream, tile_m: cutlass.Constexpr = 64, rows: cutlass.Constexpr = 4):
    tiled(note, x.shape[0], (tile_m, 2 * tile_m), rows)
'''
    )
    text = folded(source, 8, 6)
    assert '"""Notes tiles."""\n    tile_shape = (TILE_M, 2 * TILE_M)\n    rows = ROWS\n' in text


def test_arguments_behind_a_starred_one_are_counted_from_the_end() -> None:
    source = (
        HEAD
        + """

def several(note, a, b, vec: cutlass.Constexpr, fast: cutlass.Constexpr):
    note(a, b, vec if fast else 0)


def launch(x, note, stream, vec: cutlass.Constexpr = 8):
    both = (x.shape[0], 3)
    several(note, *both, vec, True)
"""
    )
    text = folded(source, 8, 9)
    assert "def several(note, a, b):\n    note(a, b, VEC)" in text and "several(note, *both)" in text


def test_functions_that_are_handed_around_keep_their_parameters() -> None:
    source = (
        HEAD
        + """

def plus(a, b):
    return a + b


def launch(x, note, stream):
    op = {0: plus}
    note(op[0](x.shape[0], 1), plus(1, 1))
"""
    )
    assert "def plus(a, b):" in folded(source, 8, 9)


def test_parameters_of_a_kernel_that_are_no_constexpr_stay() -> None:
    source = (
        HEAD
        + """

@cute.kernel
def kernel(note, x: cute.Tensor, flag: cutlass.Constexpr):
    note(flag)


def launch(x, note, stream):
    kernel(note, x, 3)
"""
    )
    assert "def kernel(note, x: cute.Tensor):" in folded(source, 8, 9)


def test_parameters_of_a_kernel_for_no_tensors_go() -> None:
    source = (
        HEAD
        + """

@cute.kernel
def kernel(note, xs: tuple, ys: tuple, zs: tuple):
    for x in (*xs, *ys):
        note(x)
    if cutlass.const_expr(len(zs) > 0):
        note(zs)


def launch(x, note, stream):
    kernel(note, (x.shape[0], 1), (), ())
"""
    )
    text = folded(source, 8, 9)
    assert "def kernel(note, xs: tuple):" in text and "kernel(note, (x.shape[0], 1))" in text


SHORTENED = """

def shortened(values, numbers, vec: cutlass.Constexpr):
    if vec == 8:
        return [values[i] for i in numbers]
    values = values[:1]
    return [values[i] for i in numbers]


def doubled(value):
    return 2 * value


def launch(x, note, stream, vec: cutlass.Constexpr = 8):
    values, at = [x.shape[0], 1], (1, min(x.shape[0], 0))
{0}
"""


def test_what_folding_left_of_a_function_takes_the_place_of_its_calls() -> None:
    source = HEAD + SHORTENED.format("    found = shortened(values, at, vec)\n    note(found, doubled(values[0]))")
    text = folded(source, 8, 9)
    assert "found = [values[i] for i in at]" in text and "doubled(values[0])" in text and "def shortened" not in text


@pytest.mark.parametrize(
    "body",
    [
        "    i = (min(x.shape[0], 1),)\n    found = shortened(values, i, vec)\n    note(found)",  # its own i
        "    found = shortened(values + [0], at, vec)\n    note(found)",  # would be computed for each i
        "    found = shortened(values, numbers=at, vec=vec)\n    note(found)",
    ],
)
def test_what_takes_the_place_of_a_call_says_the_same(body: str) -> None:
    assert "note(found)" in folded(HEAD + SHORTENED.format(body), 8, 9)  # which compares what is noted


def test_what_launch_does_not_reach_goes() -> None:
    source = (
        HEAD.replace("import math\n", "import functools\nimport math\n")
        + '''
LIMIT = 7
UNUSED = LIMIT + 1  # for nobody


def helper(x):
    return math.gcd(x, LIMIT)


def unused(x):
    return helper(functools.reduce(max, x))


class Unused:
    pass


def constraints(config, workload, device):
    return config["vec"] > 2


def workspace(workload, config):
    """One tensor."""
    return [("parts", "f32", (config["vec"], LIMIT))]


def launch(x, note, stream, vec: cutlass.Constexpr = 8):
    note(helper(x.shape[0]))
'''
    )
    text = folded(source, 14)
    assert all(gone not in text for gone in ("functools", "nused", "UNUSED", "constraints", "import cutlass\n"))
    assert 'return [("parts", "f32", (VEC, LIMIT))]' in text and "def workspace(workload, config):" in text
    kept = folded(source, 14, rules=True)
    assert "def constraints(config, workload, device):\n    return True" in kept


def test_a_config_that_is_handed_on_is_written_out() -> None:
    source = (
        module("note(vec)", VEC)
        + """

def own(config):
    return {name: value for name, value in config.items()}


def workspace(workload, config):
    return [("parts", "f32", (own(config)["vec"],))]
"""
    )
    assert 'config = {"vec": VEC}\n' in folded(source)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("n * one", "n"), ("n // one * 2", "n * 2"), ("(n + one - 1) // one", "n"), ("n + zero", "n"),
        ("zero + n", "n"),
        ("zero * n + n", "n"), ("n % one", "0"), ("(n + 2) * one * 2", "(n + 2) * 2"), ("n - (zero + n)", "n - n"),
        ("min(vec, 4)", "4"), ("max(vec // 32, 1)", "1"), ("n > 3 and one == 1", "n > 3"), ("one == 1 and n", "n"),
        ("not one == 2", "True"), ("n * vec", "n * VEC"),
    ],
)  # fmt: skip
def test_arithmetic_that_does_nothing_goes(written: str, becomes: str) -> None:
    source = module(f"n = x.shape[0]\nnote({written})", ", one: cutlass.Constexpr = 1, zero: int = 0, vec: int = 8")
    assert launch_of(folded(source, 8, 9))[-1] == f"    note({becomes})"


def test_names_for_a_literal_or_another_name_go_and_so_do_unread_ones() -> None:
    source = module("""
rank = 0  # of this block
n = x.shape[0]
first = rank * 8 + n
start = first
unread, kept = n + 1, n + 2

note(start, kept)
""")
    assert launch_of(folded(source, 8, 9)) == ["    n = x.shape[0]", "    kept = n + 2", "", "    note(n, kept)"]


def test_a_value_that_is_there_already_is_not_computed_again() -> None:
    source = (
        HEAD
        + """

def launch(x, note, stream):
    r = Register(x.shape[0])
    n = x.shape[0]
    w = n + 3
    note(w)
    w = n + 3
    note(w)
    v = r.load()
    note(v)
    v = r.load()
    note(v)
    r.store(1)
    v = r.load()
    note(v)


class Register:
    def __init__(self, value):
        self.value = value

    def load(self):
        return self.value

    def store(self, value):
        self.value = value
"""
    )
    text = folded(source, 8, 9)
    assert text.count("v = r.load()") == 2 and text.count("w = ") == 1


def test_a_formula_over_a_function_of_the_config_is_its_value() -> None:
    source = (
        HEAD
        + """
SMEM = 232448


def stages_that_fit(tile):
    return SMEM // (tile * 1000)


def launch(x, note, stream, tile: cutlass.Constexpr = 64):
    stages = min(8, stages_that_fit(tile))
    note(stages * x.shape[0])
"""
    )
    text = folded(source, 8, 9)
    assert "stages_that_fit" not in text and "SMEM" not in text and "note(3 * x.shape[0])" in text


@pytest.mark.slow
def test_a_report_that_is_too_long_comes_in_parts() -> None:
    body = "n = x.shape[0]\n" + "\n".join(f"note(1 if n > {at} else 2)" for at in range(2500))
    probe = Probe(module(body))
    assert len(probe) > 2500
    assert "if n >" not in folded(module(body), 9999)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def launch(", "not valid Python"), ("x = 1\n", "no top-level function launch"),
        ("def launch(x, vec=4):\n    pass\n", "after stream"),
        ("def launch(x, stream, vec=f()):\n    pass\n", "default of launch()'s parameter vec is not a literal"),
        ("def launch(x, stream, vec=4):\n    vec = 5\n", "launch() assigns its parameter vec"),
    ],
)  # fmt: skip
def test_what_cannot_be_specialised_is_said(source: str, why: str) -> None:
    with pytest.raises(CannotSpecialise) as caught:
        specialise(Probe(source), {})
    assert why in str(caught.value)
    with pytest.raises(CannotSpecialise, match="no parameter threads"):
        specialise(Probe("def launch(x, stream):\n    pass\n"), {"threads": 4})


@pytest.mark.parametrize("report", ["{nonsense};T", "{()()};T", "{__import__};T"])
def test_a_report_that_is_no_plain_value_is_not_known(report: str) -> None:
    """A candidate's text could write the report."""
    probe = Probe(module("note(1 if x.shape[0] else 2)"))
    probe.read([report])
    assert ("launch", "x") not in probe.facts().arguments


def test_a_comment_above_a_branch_that_is_not_taken_goes_with_it() -> None:
    source = module("# why it is wide\nif vec > 8:\n    note(1)\nelse:\n    # why not\n    note(2)", VEC)
    assert launch_of(folded(source)) == ["    # why not", "    note(2)"]


def test_a_tuple_that_is_taken_apart_goes() -> None:
    source = (
        HEAD
        + """

def tiled(note, x, tiling: cutlass.Constexpr):
    (tile_m, tile_n), pairs, whole = tiling
    for p in cutlass.range_constexpr(len(pairs)):
        note(x, tile_m, tile_n, pairs[p][0], 1 + max(pair[1] for pair in pairs))
    note(*whole, [x for i in range(len(pairs))])


def launch(x, note, stream, tile_m: cutlass.Constexpr = 64):
    tile = (tile_m, 4)
    tiling = tile, ((0, 1),), ()
    tiled(note, x.shape[0], tiling)
"""
    )
    lines = ["    x_2 = x.shape[0]", "    note(x_2, TILE_M, 4, 0, 2)", "    note([x_2])"]
    assert launch_of(folded(source, 8, 9)) == lines


def test_what_a_function_without_parameters_computes_is_its_value() -> None:
    source = (
        HEAD
        + '''
KIB = 1024


def room(tile):
    """Stages that fit."""
    terms = ((0, 1),)
    bytes = tile * KIB
    return 8 * KIB // bytes + [term[1] for term in terms].index(1)


def launch(x, note, stream, tile: cutlass.Constexpr = 4):
    note(x.shape[0] * room(tile))
'''
    )
    text = folded(source, 8, 9)
    assert "room" not in text and "KIB" not in text and launch_of(text) == ["    note(x.shape[0] * 2)"]


def test_a_name_for_a_function_is_that_function() -> None:
    plus = "\n\ndef plus(a, b):\n    return a + b\n\n\nADD = plus\n\n\n"
    text = folded(HEAD + plus + "def launch(x, note, stream):\n    note(ADD(x.shape[0], 1))\n", 8, 9)
    assert "ADD" not in text and "note(plus(x.shape[0]" in text


def test_what_is_assigned_and_changed_at_once_is_assigned_once() -> None:
    source = module(
        "at = 0\nat, slot = (at, x.shape[0]), 3\nnote(at, slot, slot, slot)\nn = x.shape[0]\nn = n\nnote(n)"
    )
    assert launch_of(folded(source, 8, 9))[0] == "    at, slot = (0, x.shape[0]), 3"


def test_a_loop_of_one_trip_inside_a_loop_on_the_gpu_is_its_body() -> None:
    source = module(
        "for step in cutlass.range(x.shape[0]):\n    for i in range(vec):\n        at = i\n        note(at)",
        ", vec: int = 1",
    )
    assert launch_of(folded(source, 8, 9)) == ["    for step in cutlass.range(x.shape[0]):", "        note(0)"]


WALKED = """

def doubled(value):
    return (2 * value,)


def summed(value, more):
    total = value + more
    return (total,)


@cute.jit
def walked(xs, function, values):
    terms, numbers = function
    found = [x + 1 for x in xs]
    return terms(*found, *[values[i] for i in numbers])


@cute.kernel
def kernel(note, xs: tuple, walks: cutlass.Constexpr):
    values = [None for _ in walks]
    for *function, at in walks:
        found = walked(xs, function, values)
        for i, part in zip(at, found):
            values[i] = part
    note(values[0], values[1])


@cute.jit
def launch(x, note, stream):
    kernel(note, (x.shape[0],), ((doubled, (), (0,)), (summed, (0,), (1,))))
"""


def test_a_walk_over_records_of_functions_is_what_they_compute() -> None:
    text = folded(HEAD + WALKED, 8, 9)
    gone = ("walked", "doubled", "summed", " for ", "values", "tuple", "__", "walks")
    assert "def kernel(note, xs):" in text and not any(each in text for each in gone), text


def test_a_list_that_is_changed_keeps_its_elements() -> None:
    source = module("xs = [1, 2]\nxs.append(x.shape[0])\nnote(xs[0], len(xs))\nxs[0] = x.shape[0]\nnote(xs[0], xs)")
    assert "len(xs)" in folded(source, 8, 9)


def test_what_is_bound_again_is_no_longer_what_it_was() -> None:
    source = module("n = x.shape[0]\npair = (n, 3)\nn = n + 1\na, b = pair\nnote(a, b, n)")
    assert "(n, 3)" in folded(source, 8, 9)


def test_a_function_that_calls_one_with_effects_stays() -> None:
    """Its own text computes with shapes only; what it calls reads from memory."""
    source = module("""
kept = asked(note, vec)
if kept == "memory":
    note(1)
""", VEC).replace("@cute.jit\ndef launch", """@cute.jit
def fetch(note, n):
    note(n)


def asked(note, n):
    fetch(note, n)
    return "registers"


@cute.jit
def launch""")  # fmt: skip
    assert "kept = asked(note)" in folded(source)


def test_a_function_of_which_nothing_is_left_is_not_called() -> None:
    source = module("""
arrive(vec)
note(1)
""", VEC).replace("@cute.jit\ndef launch", """def arrive(n):
    if n > 8:
        cute.arch.sync_threads()


@cute.jit
def launch""")  # fmt: skip
    assert launch_of(folded(source)) == ["    note(1)"]
    assert "arrive" not in folded(source)
