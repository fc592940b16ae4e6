"""What docstrings and comments say once parameters are gone."""

from __future__ import annotations

from tests.templates.emit.folding import HEAD, folded, launch_of, module


def test_docstrings_name_what_is_there() -> None:
    source = (
        '"""Up to ``vec`` at a time; ``fast`` ones leave some out.\n\n``threads`` do it."""\n\n'
        + HEAD
        + '''
def scaled(note, x, vec: cutlass.Constexpr, fast: cutlass.Constexpr, deep: cutlass.Constexpr):
    """Notes ``x`` by ``vec`` (all of it if ``fast``). ``fast``: not exactly. It is ``x + vec``; ``deep`` is for others.

    ``deep``: not at all.
    """
    note(x * vec if fast else x)


def launch(x, note, stream, vec: cutlass.Constexpr = 8, fast: cutlass.Constexpr = True, threads: cutlass.Constexpr = 1):
    """``fast``: no."""
    scaled(note, x.shape[0], vec, fast, threads)
'''
    )
    text = folded(source, 8, 9)
    assert text.startswith('"""Up to ``VEC`` at a time."""\n')
    assert '    """Notes ``x`` by ``VEC``. It is ``x + VEC``.\n    """\n    note(x * VEC)\n' in text
    assert "``fast``" not in text and "``deep``" not in text and "``threads``" not in text


def test_a_comment_does_not_name_what_is_gone() -> None:
    body = "# for tile_m rows\nnote(x.shape[0])  # as is_fast says\nnote(1)  # for x_shape"
    source = module(body, ", tile_m: int = 1, is_fast: bool = True")
    assert launch_of(folded(source, 8, 9)) == ["    note(x.shape[0])", "    note(1)  # for x_shape"]
