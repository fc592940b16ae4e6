"""Two candidates of a run compared: numbers, parameters, text, PTX."""

from __future__ import annotations

from cutegen_lab.core.plain_text import plain
from cutegen_lab.views.diff import source_diff
from cutegen_lab.views.model import ComparedMetric, ComparisonView, DiffLine, MetricView, RunView, Tone
from cutegen_lab.views.specialised import changed_values, shown
from cutegen_lab.views.text import changed_parameters, columns, diff_text

_SAME = 0.0005  # relative differences below this are shown as none


def comparison(
    view: RunView, before_id: str, after_id: str, *, general: bool = False, ptx: tuple[str, str] | None = None,
    ptx_note: str = "",
) -> ComparisonView:  # fmt: skip
    """What changes from ``before_id`` to ``after_id``, which need not be related. The texts are those for one config
    alone; with ``general``, those with parameters. ``ptx``: PTX of both, if both were compiled; otherwise ``ptx_note``
    says why there is none. Raises KeyError for an unknown id."""
    by_id = {each.id: each for each in view.candidates}
    before, after = (shown(by_id[each], general) for each in (before_id, after_id))
    olds, news = ({each.key: each for each in (*c.metrics, *c.counters)} for c in (before, after))
    return ComparisonView(
        before_id=before_id,
        after_id=after_id,
        metrics=[compared(olds.get(key), news.get(key)) for key in {**olds, **news}],
        config_changes=changed_values(
            *({each.name: each.value for each in candidate.config} for candidate in (before, after))
        ),
        diff=source_diff(before.source, after.source),
        ptx_diff=source_diff(*ptx) if ptx else [],
        ptx_note=ptx_note,
    )


def comparison_text(found: ComparisonView, ptx: bool = False) -> str:
    """The comparison as a table, the changed parameters and the diff of the texts; with ``ptx``, also the diff of the
    PTX."""
    head = ("", found.before_id, found.after_id, "change")
    rows = [(each.label, each.before or "–", each.after or "–", each.change) for each in found.metrics]
    parts = [*(plain(line) for line in columns([head, *rows])), ""]
    parts += changed_parameters(found.config_changes)
    parts += [_counted("text", found.diff), diff_text(found.diff)]
    if found.ptx_note:
        parts.append(f"PTX: {plain(found.ptx_note)}")
    else:
        parts.append(_counted("PTX", found.ptx_diff))
        parts += [diff_text(found.ptx_diff)] if ptx else []
    return "\n".join(parts)


def _counted(what: str, lines: list[DiffLine]) -> str:
    added, removed = (sum(line.kind == kind for line in lines) for kind in ("added", "removed"))
    return f"{what}: +{added} −{removed} lines"


def compared(before: MetricView | None, after: MetricView | None) -> ComparedMetric:
    """A metric of two candidates; one of the two may lack it."""
    known = after or before
    assert known is not None
    change, tone = _change(before, after)
    return ComparedMetric(
        key=known.key, label=known.label, before=_text(before), after=_text(after), change=change, tone=tone
    )


def _text(metric: MetricView | None) -> str:
    if metric is None:
        return ""
    return f"{metric.text} {metric.basis}".rstrip()


def _change(before: MetricView | None, after: MetricView | None) -> tuple[str, Tone]:
    """The change in words and whether it is good; a measured time is not compared with a predicted one."""
    if before is None or after is None or before.basis != after.basis:
        return "", "neutral"
    old, new = before.value, after.value
    if old is None or new is None:
        return "", "neutral"
    if old == new or (old and abs(new / old - 1) < _SAME):
        return "=", "neutral"
    tone: Tone = "good" if (new < old) == (after.better == "less") else "bad"
    if old == 0:
        return "more" if new > 0 else "less", tone
    percent = abs(new / old - 1) * 100
    text = f"{percent:.1f}" if percent < 9.95 else f"{percent:.0f}"
    return f"{'+' if new > old else '−'}{text}%", tone
