"""Colours of cells: eight hues in four strengths each.

The hues are Okabe and Ito's (https://jfly.uni-koeln.de/color, as in Wong, Nature Methods 8, 441, 2011), which are
distinct under all common colour blindness; black is grey here. A strength is an opacity, so that one set serves light
and dark pages, with a contrast of at least 4.5 to 1 between text and cell (WCAG 2.1). Each cell also shows its number.
"""

from __future__ import annotations

HUES = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999")
STRENGTHS = (0.44, 0.33, 0.22, 0.10)
PAGE, TEXT, MUTED = ("#ffffff", "#111111"), ("#111111", "#f0f0f0"), ("#5f5f5f", "#a8a8a8")
"""(light, dark)."""


def fill(number: int) -> tuple[str, float]:
    """(hue, opacity) of colour ``number``."""
    return HUES[number // 4 % len(HUES)], STRENGTHS[number % 4]
