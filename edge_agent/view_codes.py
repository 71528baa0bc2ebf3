"""ViewCodes: the codes of views, looked for on a thread of their own while their text is found and read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from edge_agent.records import Code, Quad
from edge_agent.stages.code_reader import CodeReader
from edge_agent.stages.images import within
from edge_agent.stages.views import View

CODES_MOST_PX = 12_500_000  # of a picture that is searched for codes: some 15 ms and 1 MB a million


class ViewCodes:
    """Searches one view after the other for codes of `formats` (config.CodeFormat), to be set; none: for no code.

    The thread is there from the first search to `close`.
    """

    def __init__(self) -> None:
        self.formats: Sequence[str] = ()
        self._reader = CodeReader()
        self._thread = ThreadPoolExecutor(1, "view-codes")

    def begin(self, view: View) -> Future[list[Code]]:
        """The codes of the view, in px of the frame, once they are found; cv2.error where OpenCV cannot search it."""
        if not self.formats:
            none: Future[list[Code]] = Future()
            none.set_result([])
            return none
        return self._thread.submit(self._search, view, self.formats)

    def close(self) -> None:
        """Waits for the search that is under way and ends the thread."""
        self._thread.shutdown(cancel_futures=True)

    def _search(self, view: View, formats: Sequence[str]) -> list[Code]:
        image, times = within(view.image, CODES_MOST_PX)
        return [
            replace(code, quad=view.in_frame(Quad(code.quad.points * times)), region=view.region)
            for code in self._reader.read(image, formats)
        ]
