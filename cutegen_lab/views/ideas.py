"""Ideas of a run, as lists show them."""

from __future__ import annotations

from cutegen_lab.core.idea_results import IdeaResult, idea_results, open_ideas
from cutegen_lab.core.run import RunState
from cutegen_lab.views.model import IdeaView


def idea_views(state: RunState) -> list[IdeaView]:
    """The ideas that are open, the most promising first, then the others, oldest first."""
    return [_view(each) for each in (*open_ideas(state), *(r for r in idea_results(state) if r.status != "open"))]


def idea_text(idea: IdeaView) -> str:
    """An idea in one line."""
    said: list[str] = [idea.status]
    if idea.expected:
        said.append(f"expected {idea.expected}")
    if idea.came:
        said.append(f"came {idea.came}")
    if idea.tries:
        said.append(f"tried by {', '.join(idea.tries)}")
    elif idea.cost == "large":
        said.append("much work")
    return f"{idea.id} {idea.claim} ({'; '.join(said)})"


def _view(result: IdeaResult) -> IdeaView:
    idea = result.idea
    return IdeaView(
        id=result.id, claim=idea.claim, by=result.by, status=result.status,
        expected=str(idea.expects) if idea.expects else "", came=str(result.came) if result.came else "",
        cost=idea.cost, tries=list(result.tries),
    )  # fmt: skip
