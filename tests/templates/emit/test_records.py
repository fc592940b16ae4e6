"""Records that a kernel file hands on: opened, and what is left of them in the text for one config."""

from __future__ import annotations

import libcst as cst

from cutegen_lab.templates.emit.records import with_records_open
from cutegen_lab.templates.emit.results import with_read_results_only, with_results_of_one_open
from tests.templates.emit.folding import HEAD, folded, noted

_RECORDS = """

@cute.kernel
def walk(x, note, problem: cutlass.Constexpr, config: cutlass.Constexpr):
    rows, n = problem
    threads, loads = config
    share = n, threads, loads
    step(x, note, share)
    last(note, share, rows)


def step(x, note, share):
    n, threads, _ = share
    note(x, n // threads)
    last(note, share, 0)


def last(note, share, more):
    _, threads, loads = share
    note(threads * loads + more)


def launch(x, note, stream, threads: cutlass.Constexpr = 32):
    walk(x.shape[0], note, (x.shape[0], 4096), (threads, 2))
"""


def test_a_record_is_a_parameter_for_each_field() -> None:
    opened = with_records_open(cst.parse_module(HEAD + _RECORDS)).code
    assert "walk(x.shape[0], note, x.shape[0], 4096, threads, 2)" in opened
    assert "    step(x, note, n, threads, loads)" in opened
    assert "def step(x, note, n, threads, loads):" in opened
    assert "    last(note, n, threads, loads, 0)" in opened
    assert "problem" not in opened and "config" not in opened and " = share" not in opened
    assert noted(opened, 64, {}) == noted(HEAD + _RECORDS, 64, {})


def test_each_field_folds_by_itself() -> None:
    text = folded(HEAD + _RECORDS, 64, 128)
    assert "share" not in text and "config" not in text and "THREADS * 2" in text


_PAIR = """

def f(note, pair):
    a, b = pair
    note(a, pair)


def launch(x, note, stream):
    f(note, (1, 2))
"""


def _unchanged(source: str) -> bool:
    return with_records_open(cst.parse_module(source)).code == source


def test_what_is_used_as_a_tuple_is_no_record() -> None:
    whole = HEAD + _PAIR
    assert _unchanged(whole)
    assert not _unchanged(whole.replace("note(a, pair)", "note(a, b)"))
    handed_on = whole.replace("note(a, pair)", "g(note, pair)") + "\n\ndef g(note, pair):\n    note(*pair)\n"
    assert _unchanged(handed_on)


def test_a_tuple_that_changes_before_the_call_is_not_opened() -> None:
    source = (
        HEAD
        + """

def f(note, pair):
    a, b = pair
    note(a, b)


def launch(x, note, stream):
    n = x.shape[0]
    pair = n, 2
    n = n + 1
    f(note, pair)
    note(n)
"""
    )
    assert _unchanged(source)
    assert not _unchanged(source.replace("    n = n + 1\n", ""))
    assert noted(source, 8, {}) == [(8, 2), (9,)]


def test_a_kernel_keeps_a_record_of_which_the_text_tells_nothing() -> None:
    source = (
        HEAD
        + """

@cute.kernel
def kernel(note, dtypes: cutlass.Constexpr):
    a, b = dtypes
    note(a, b)


def launch(x, note, stream):
    a = x.shape[0]
    b = x.shape[0] + 1
    kernel(note, (a, b))
"""
    )
    assert _unchanged(source)
    assert not _unchanged(source.replace("kernel(note, (a, b))", "kernel(note, (a, 1))"))


def test_results_that_no_caller_reads_go() -> None:
    source = (
        HEAD
        + """

def share(n):
    num, steps = n // 2, n // 4
    return num, steps, n


def launch(x, note, stream):
    num, steps, _ = share(x.shape[0])
    note(num)
    n, _, _ = share(3)
    note(n)
"""
    )
    changed = with_read_results_only(cst.parse_module(source)).code
    assert "    return num\n" in changed and "    num = share(x.shape[0])" in changed
    assert noted(changed, 8, {}) == noted(source, 8, {})
    read = source.replace("note(n)", "note(n, steps)")
    assert "return num, steps\n" in with_read_results_only(cst.parse_module(read)).code


def test_a_result_that_is_handed_around_whole_stays() -> None:
    source = HEAD + "\ndef f():\n    return 1, 2\n\n\ndef launch(x, note, stream):\n    a, _ = f()\n    note(a, *f())\n"
    assert with_read_results_only(cst.parse_module(source)).code == source


def test_a_function_of_one_result_returns_that() -> None:
    source = (
        HEAD
        + """

def f(x):
    return (x + 1,)


def launch(x, note, stream):
    for y in f(x.shape[0]):
        note(y)
"""
    )
    changed = with_results_of_one_open(cst.parse_module(source)).code
    assert "    return x + 1\n" in changed and "in (f(x.shape[0]),):" in changed
    assert noted(changed, 8, {}) == noted(source, 8, {})
    handed = source.replace("note(y)", "note(y, f)")
    assert with_results_of_one_open(cst.parse_module(handed)).code == handed


def test_parameters_that_always_get_the_same_are_one() -> None:
    source = (
        HEAD
        + """

@cute.kernel
def kernel(note, body: cutlass.Constexpr, n: cutlass.Constexpr, length: cutlass.Constexpr):
    note(body(n), length - 1, n * length)
    note(n)


def body(n):
    m = n * 2
    return m * m


def launch(x, note, stream):
    n = x.shape[0]
    kernel(note, body, n, n)
    note(n)
"""
    )
    text = folded(source, 8, 9)
    assert "def kernel(note, n: cutlass.Constexpr):" in text and "note(body(n), n - 1, n * n)" in text
    assert "kernel(note, n)" in text


def test_names_that_a_call_assigns_are_those_of_the_function() -> None:
    source = (
        HEAD
        + """

@cute.kernel
def kernel(note, ops: cutlass.Constexpr, n):
    tidx, _, _ = cute.arch.thread_idx()
    slots, arrived = None, None
    if cutlass.const_expr(len(ops) > 1):
        slots, arrived = allocated(note, ops)
    note(tidx, slots, arrived, n)


@cute.jit
def allocated(note, ops):
    tidx, _, _ = cute.arch.thread_idx()
    slots = [op + 1 for op in ops]
    note(tidx)
    arrived = note(slots)
    return slots, arrived


def launch(x, note, stream):
    kernel(note, (1, 2), x.shape[0])
"""
    )
    text = folded(source, 8, 9)
    assert "slots_2" not in text and "arrived_2" not in text and "None" not in text
    assert text.count("thread_idx") == 1


def test_a_docstring_does_not_name_a_function_that_its_calls_stand_for() -> None:
    source = (
        HEAD
        + """

@cute.kernel
def kernel(note, body: cutlass.Constexpr, n):
    \'\'\'Notes ``n``. ``body`` maps it.\'\'\'
    (y,) = body(n)
    note(y)


def body(n):
    return (n + 1,)


def launch(x, note, stream):
    kernel(note, body, x.shape[0])
"""
    ).replace("'''", '"' * 3)
    text = folded(source, 8, 9)
    assert "body" not in text and "Notes ``n``." in text
