"""ViewCodes: real codes, looked for beside whatever else goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
import zxingcpp

from edge_agent.settings.roi import RoiConfig
from edge_agent.stages.views import views_of
from edge_agent.view_codes import CODES_MOST_PX, ViewCodes

SCALE = 6


def drawn(text: str) -> npt.NDArray[np.uint8]:
    code = zxingcpp.create_barcode(text, zxingcpp.BarcodeFormat.DataMatrix)
    return np.pad(np.array(code.to_image(scale=SCALE)), 30, constant_values=255)[..., None].repeat(3, axis=2)


def placed(texts: tuple[str, ...], shape: tuple[int, int] = (480, 640)) -> npt.NDArray[np.uint8]:
    """Side by side, 300 px from one to the next."""
    picture = np.full((*shape, 3), 255, np.uint8)
    for n, text in enumerate(texts):
        code = drawn(text)
        picture[100 : 100 + code.shape[0], 40 + 300 * n : 40 + 300 * n + code.shape[1]] = code
    return picture


@pytest.fixture
def codes() -> Iterator[ViewCodes]:
    codes = ViewCodes()
    codes.formats = ("DataMatrix",)
    yield codes
    codes.close()


def test_codes_of_several_views_come_each_with_its_region_and_in_px_of_the_frame(codes: ViewCodes) -> None:
    regions = {"cap": RoiConfig(width=0.5), "side": RoiConfig(x=0.5, width=0.5)}
    views = views_of(placed(("CAP", "SIDE")), regions)
    searches = [codes.begin(view) for view in views]
    found = [code for search in searches for code in search.result()]
    assert [(code.text, code.region) for code in found] == [("CAP", "cap"), ("SIDE", "side")]
    left, right = (float(code.quad.points[:, 0].min()) for code in found)
    assert right - left == pytest.approx(300, abs=2)


def test_picture_beyond_the_most_is_searched_made_smaller_and_its_codes_stand_where_they_are(codes: ViewCodes) -> None:
    shape = (3600, 4000)
    assert shape[0] * shape[1] > CODES_MOST_PX
    (view,) = views_of(placed(("LARGE",), shape), {})
    (code,) = codes.begin(view).result()
    assert code.text == "LARGE"
    assert code.quad.points.min() == pytest.approx(70, abs=8)


def test_without_formats_nothing_is_searched_and_no_thread_begun(codes: ViewCodes) -> None:
    codes.formats = ()
    (view,) = views_of(placed(("CAP",)), {})
    assert codes.begin(view).result() == []
    assert not any(thread.name.startswith("view-codes") for thread in threading.enumerate())


def test_closing_ends_the_thread_and_what_was_begun(codes: ViewCodes) -> None:
    (view,) = views_of(placed(("CAP",)), {})
    begun = codes.begin(view)
    codes.close()
    assert begun.done()
    assert not any(thread.name.startswith("view-codes") for thread in threading.enumerate())
    codes.close()
