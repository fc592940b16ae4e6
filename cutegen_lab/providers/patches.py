"""Patches in a model's answer, in the format of OpenAI's ``apply_patch`` (V4A), as edits of the candidate's lines.

Source: the tool's grammar in openai/codex (``codex-rs/apply-patch``). A path in a patch is only shown in messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutegen_lab.core.plain_text import one_line
from cutegen_lab.providers.line_edits import EditError, LineEdit

BEGIN, _END = "*** Begin Patch", "*** End Patch"
_UPDATE, _ADD, _DELETE, _MOVE, _END_OF_FILE = (
    "*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:", "*** End of File"
)  # fmt: skip
_SHOWN = 60  # maximum number of characters of a path or line in a message


def patch_text(operation: str, path: str, diff: str) -> str:
    """The patch of an ``apply_patch`` call of the Responses API. ``operation``: its type, such as "update_file"."""
    head = {"create_file": _ADD, "update_file": _UPDATE}.get(operation, _DELETE)
    return f"\n{BEGIN}\n{head} {one_line(path)}\n{diff.rstrip()}\n{_END}\n"


def patches_in(text: str) -> list[list[str]]:
    """The lines of each patch in ``text``, in a fenced block or not, without its first and last line. Raises EditError
    for one that has no end."""
    found: list[list[str]] = []
    inside: list[str] | None = None
    for line in text.split("\n"):
        if line.rstrip() == BEGIN:
            inside = []
        elif line.rstrip() == _END and inside is not None:
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.append(line)
    if inside is not None:
        raise EditError(f"a patch has no `{_END}`: it was cut off")
    return found


def read_patches(patches: Sequence[Sequence[str]]) -> list[LineEdit] | str:
    """The edits in ``patches``, or the text of the module that they add. Raises EditError for several files, a file
    that is deleted, and lines of another form."""
    files = [file for lines in patches for file in _files(lines)]
    if not files:
        raise EditError(f"a patch has no `{_UPDATE} NAME`")
    paths = list(dict.fromkeys(path for _, path, _ in files))
    if len(paths) > 1:
        named = ", ".join(path[:_SHOWN] for path in paths[:3])
        raise EditError(f"the patch is of {len(paths)} files ({named}), but the candidate is one module")
    kinds = {kind for kind, _, _ in files}
    if _DELETE in kinds or len(kinds) > 1:
        raise EditError(f"the patch must either have `{_UPDATE} NAME` or add one whole module")
    if kinds == {_ADD}:
        return "".join(f"{_added(line)}\n" for _, _, lines in files for line in lines if line.strip() or len(files) > 1)
    return [edit for _, _, lines in files for edit in _edits(lines)]


def _files(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """What is done to each file, its path, and the lines of the diff."""
    current: tuple[str, str, list[str]] | None = None
    for line in lines:
        kind = next((each for each in (_UPDATE, _ADD, _DELETE) if line.startswith(each)), "")
        if kind:
            if current is not None:
                yield current
            current = kind, one_line(line.removeprefix(kind).strip()), []
        elif line.startswith(_MOVE) or line.rstrip() == _END_OF_FILE:
            continue
        elif current is not None:
            current[2].append(line)
        elif line.strip():
            raise EditError(f"a patch begins with `{_UPDATE} NAME`, not `{line.strip()[:_SHOWN]}`")
    if current is not None:
        yield current


def _added(line: str) -> str:
    if line.startswith("+"):
        return line[1:]
    raise EditError(f"a line of a module that a patch adds begins with `+`, not `{line.strip()[:_SHOWN]}`")


def _edits(lines: Sequence[str]) -> Iterator[LineEdit]:
    """An edit for each part of a diff; lines with ``@@`` before it name what it is in."""
    within: list[str] = []
    search: list[str] = []
    replace: list[str] = []

    def edit() -> Iterator[LineEdit]:
        while search and replace and not search[-1] and not replace[-1]:  # an empty line between two parts
            del search[-1], replace[-1]
        if search != replace:
            yield LineEdit(tuple(search), tuple(replace), tuple(within))

    for line in lines:
        if line.startswith("@@"):
            yield from edit()
            inner = line[2:].rpartition("@@")[2].strip()  # of `@@ -1,3 +1,4 @@ def f():` too
            within = [*([] if search or replace else within), *([inner] if inner else [])]
            search, replace = [], []
        elif line[:1] not in ("", " ", "-", "+"):
            raise EditError(f"a line of a patch begins with a space, `-`, `+` or `@@`, not `{line.strip()[:_SHOWN]}`")
        else:
            search += [] if line[:1] == "+" else [line[1:]]
            replace += [] if line[:1] == "-" else [line[1:]]
    yield from edit()
