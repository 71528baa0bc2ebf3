"""ViewText: what a view says, and what it says held the other way up.

Some print says something either way, 9066 and 9906; nothing in the picture tells which is meant, so what is expected of
the camera does (`Pipeline.expected`). Print that reads one way alone never is turned by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge_agent.records import GLARE, TURNED, TextBox, TextLine
from edge_agent.stages.glare import find_glare
from edge_agent.stages.quality import Flag, look
from edge_agent.stages.reading_order import reading_order
from edge_agent.stages.stacked import unstacked
from edge_agent.stages.text_recogniser import PAGE, TextRecogniser, confidence_of
from edge_agent.stages.text_search import Found
from edge_agent.stages.views import View
from edge_agent.verify.expectation import Expectation

PASSED_OVER = 4  # readings of a text that was turned in vain, before it is turned again


@dataclass(frozen=True, eq=False)
class ViewText:
    """What was read of a view: `read` stands for the boxes of `found`, in px of its image; `lines` are those that are
    believed, as a person would read them, in px of the frame. `quality`: what is wrong with the picture."""

    view: View
    found: Found
    read: Sequence[TextLine | None]
    lines: tuple[TextLine, ...]
    quality: tuple[Flag, ...]

    def is_surer_than(self, other: ViewText) -> bool:
        """Whether the same boxes were read with plainly more confidence, each counting by its length."""
        pairs = list(zip(self.read, other.read, strict=True))
        widths = [box.quad.width_px for box in self.found.boxes]
        gain = sum(w * (confidence_of(a) - confidence_of(b)) for w, (a, b) in zip(widths, pairs, strict=True))
        return gain > PAGE * sum(widths)


def read_view(recogniser: TextRecogniser, view: View, found: Found) -> ViewText:
    """The text of a view in which boxes were found."""
    read = recogniser.read_boxes(found.image, found.boxes, view.upright)
    lines, flaws = _flawed(view, unstacked(recogniser.believed(read)), found.quality)
    quality: tuple[Flag, ...] = (*found.quality, *flaws, *(("unsearched",) if found.unsearched else ()))
    return ViewText(view, found, read, _in_order(view, lines), quality)


def other_way_up(recogniser: TextRecogniser, text: ViewText) -> ViewText | None:
    """The same text held the other way up; None where it reads one way alone. Its lines are flagged `turned`, unless
    they are plainly surer so."""
    over = recogniser.other_way_up(text.found.image, text.found.boxes, text.read)
    if over is None:
        return None
    lines, _ = _flawed(text.view, unstacked(recogniser.believed(over)), text.quality)
    turned = replace(text, read=over, lines=_in_order(text.view, lines))
    if turned.is_surer_than(text):
        return turned
    return replace(turned, lines=tuple(replace(line, flags=(*line.flags, TURNED)) for line in turned.lines))


@dataclass
class _InVain:
    """What was turned in vain: its texts, what was expected then, and how many readings were passed over since."""

    texts: frozenset[str]
    expectation: Expectation
    passed_over: int = 0


class Tries:
    """Remembers what was turned in vain, so that text which says something else, or a scene that stands still, is not
    turned at every reading."""

    def __init__(self) -> None:
        self._in_vain: dict[tuple[str, str | None], _InVain] = {}

    def is_due(self, camera: str, text: ViewText, expectation: Expectation) -> bool:
        """Whether the text of a camera's view may be turned: it is believed, not known to be upright, and not one of
        the PASSED_OVER readings with a line of the text that was turned in vain for the same last."""
        if text.view.upright or not text.lines:
            return False
        last = self._in_vain.get((camera, text.view.region))
        if last is None or last.texts.isdisjoint(line.text for line in text.lines) or last.expectation != expectation:
            return True
        last.passed_over += 1
        return last.passed_over > PASSED_OVER

    def tell(self, camera: str, text: ViewText, expectation: Expectation, *, helped: bool) -> None:
        """What became of a try."""
        self._in_vain.pop((camera, text.view.region), None)
        if not helped:
            texts = frozenset(line.text for line in text.lines)
            self._in_vain[camera, text.view.region] = _InVain(texts, expectation)


def _flawed(
    view: View, lines: Sequence[TextLine], known: Sequence[Flag]
) -> tuple[Sequence[TextLine], tuple[Flag, ...]]:
    """The lines, those flagged that glare breaks off, and what is wrong with their picture beyond what is known."""
    if not lines:
        return lines, () if known else look(view.image).flags
    broken = find_glare(view.image, [line.box.quad for line in lines])
    if broken is None:
        return lines, ()
    flagged = [replace(line, flags=(*line.flags, GLARE)) if n in broken else line for n, line in enumerate(lines)]
    return flagged, ("glare",)


def _in_order(view: View, lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    """Only once lines are read it is known which way their text runs."""
    order = reading_order([line.box.quad for line in lines])
    return tuple(
        replace(lines[n], region=view.region, box=TextBox(view.in_frame(lines[n].box.quad), lines[n].box.score))
        for n in order
    )
