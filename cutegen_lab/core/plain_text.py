"""Makes text of candidates, models and servers safe to show.

Terminals obey control characters (ECMA-48: escape sequences, window title, cursor and line editing); bidirectional and
invisible characters make text look different from what it is (Unicode TR 36, TR 55).
"""

from __future__ import annotations

import re

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional
    "\u00ad\u180e\u200b-\u200d\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff"  # invisible
    "\ufff9-\ufffb\U000e0000-\U000e007f"
    "\ud800-\udfff]"  # halves of surrogate pairs: no encoding can represent them
)
_HALF = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    r"""``text`` with each of these characters as its Python escape (``\x1b``, ``\u202e``); lines end in ``\n``."""
    return _ACTING.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """:func:`plain` text on one line, with single spaces."""
    return " ".join(plain(text).split())


def continued(text: str, indent: str = "    ") -> str:
    """:func:`plain` text with further lines indented, so that none looks like a line of cutegen itself."""
    return plain(text).replace("\n", "\n" + indent)


def misfit(text: str) -> str:
    """Which half of a surrogate pair ``text`` contains and where; "" if none. (No encoding can represent it.)"""
    found = _HALF.search(text)
    if found is None:
        return ""
    line = text.count("\n", 0, found.start()) + 1
    return f"has U+{ord(found[0]):04X} in line {line}: half of a surrogate pair, and no character"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
