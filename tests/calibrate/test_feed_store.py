"""Feed store: bounded, bound to its facts, and only ever whole or nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edge_agent.backends.base import Feed
from edge_agent.calibrate.feed_store import FeedBinding, FeedStore, shape_of
from edge_agent.errors import CalibrationRefused

FACTS = {"model": "abc", "collection": "def", "numpy": "2.0"}


def crops(value: int, width: int = 64, rows: int = 1) -> Feed:
    return {"image": np.full((rows, 48, width, 3), value % 256, np.uint8)}


def opened(directory: Path, most_feeds: int = 400, **changed: str) -> FeedStore:
    return FeedStore.open(directory, FeedBinding({**FACTS, **changed}), most_feeds)


def recorded(directory: Path, feeds: list[Feed], most_feeds: int = 400) -> FeedStore:
    store = opened(directory, most_feeds)
    store.begin()
    for feed in feeds:
        store.sink(feed)
    store.finish(len(feeds))
    return store


def test_feeds_come_back_as_they_were_in_their_order(tmp_path: Path) -> None:
    feeds: list[Feed] = [
        {"file": np.arange(n + 2, dtype=np.int64)[None], "args": np.ones((1, n + 2), np.int32)} for n in range(3)
    ]
    recorded(tmp_path / "feeds", feeds)
    store = opened(tmp_path / "feeds")
    assert (store.whole, store.reason, len(store), store.rows) == (True, "", 3, 3)
    for _ in range(2):
        for got, want in zip(store.feeds(), feeds, strict=True):
            assert {name: (array.dtype, array.tolist()) for name, array in got.items()} == {
                name: (array.dtype, array.tolist()) for name, array in want.items()
            }
    assert store.shapes() == {"1x2": 1, "1x3": 1, "1x4": 1}


def test_how_often_each_shape_ran_is_kept_with_the_feeds(tmp_path: Path) -> None:
    recorded(tmp_path / "feeds", [crops(n, 320) for n in range(9)] + [crops(9, 64)], most_feeds=4)
    store = opened(tmp_path / "feeds", most_feeds=4)
    assert store.met() == {"1x48x320x3": 9, "1x48x64x3": 1}
    assert (len(store), store.left_out) == (4, 6)
    assert store.shapes()["1x48x320x3"] == 3


def test_counts_that_do_not_agree_are_damage(tmp_path: Path) -> None:
    recorded(tmp_path / "feeds", [crops(1, 320), crops(2, 64)])
    path = tmp_path / "feeds" / "manifest.json"
    whole = json.loads(path.read_text())
    for met in ({"1x48x320x3": 1}, {"1x48x320x3": 2}):
        path.write_text(json.dumps({**whole, "met": met}))
        store = opened(tmp_path / "feeds")
        assert (store.whole, store.reason) == (False, "their manifest is damaged: its counts do not agree")


def test_shape_names_what_differs_between_inputs() -> None:
    assert shape_of(crops(0, 320, 8)) == "8x48x320x3"
    assert shape_of({"ids": np.zeros((4, 16)), "mask": np.zeros((4, 16))}) == "4x16"
    assert shape_of({"a": np.zeros((4, 16)), "b": np.zeros((4, 8, 8))}) == "4x16+4x8x8"


def test_rare_shapes_keep_their_feeds_and_frequent_ones_are_thinned(tmp_path: Path) -> None:
    feeds = [crops(n, 320) for n in range(100)] + [crops(n, 64) for n in range(3)] + [crops(n, 640) for n in range(60)]
    store = recorded(tmp_path, feeds, most_feeds=20)
    assert len(store) == 20
    assert store.shapes()["1x48x64x3"] == 3
    assert abs(store.shapes()["1x48x320x3"] - store.shapes()["1x48x640x3"]) <= 1
    assert store.left_out == len(feeds) - 20
    assert len(list(tmp_path.glob("*.npz"))) == 20
    kept = [int(feed["image"].max()) for feed in store.feeds() if feed["image"].shape[2] == 640]
    assert max(kept) > 20, "not only the first of a shape are kept"


def test_same_feeds_are_thinned_the_same_way(tmp_path: Path) -> None:
    feeds = [crops(n, 64 * (1 + n % 3)) for n in range(50)]
    one, two = recorded(tmp_path / "one", feeds, 10), recorded(tmp_path / "two", feeds, 10)
    assert one.digest == two.digest != recorded(tmp_path / "three", feeds[1:], 10).digest


def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    store = FeedStore(tmp_path, FeedBinding(FACTS), most_bytes=100_000)
    store.begin()
    for number in range(40):
        store.sink(crops(number, 64 if number % 2 else 128))
    store.finish(40)
    assert 0 < sum(path.stat().st_size for path in tmp_path.glob("*.npz")) <= 100_000
    assert len(store) + store.left_out == 40
    assert set(store.shapes()) == {"1x48x64x3", "1x48x128x3"}


@pytest.mark.parametrize("name", [*FACTS, "opencv"])
def test_anything_different_means_recording_afresh_and_says_what(tmp_path: Path, name: str) -> None:
    recorded(tmp_path, [crops(1)])
    store = opened(tmp_path, **{name: "another"})
    assert (store.whole, len(store)) == (False, 0)
    assert store.reason == f"they were recorded with another {name}"
    with pytest.raises(CalibrationRefused, match=f"another {name}; record them first"):
        next(store.feeds())
    assert opened(tmp_path).whole, "merely looking destroys nothing"
    store.begin()
    store.sink(crops(2))
    store.finish(1)
    assert [int(feed["image"].max()) for feed in opened(tmp_path, **{name: "another"}).feeds()] == [2]


def test_recording_that_was_not_finished_never_counts(tmp_path: Path) -> None:
    recorded(tmp_path, [crops(1), crops(2)])
    store = opened(tmp_path)
    store.begin()
    store.sink(crops(3))
    again = opened(tmp_path)
    assert (again.whole, len(again)) == (False, 0)
    assert "recorded to the end" in again.reason


def test_fewer_feeds_than_ran_are_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.begin()
    store.sink(crops(1))
    with pytest.raises(CalibrationRefused, match="1 inputs were recorded of 2 that ran"):
        store.finish(2)
    assert not opened(tmp_path).whole


def test_damaged_or_missing_feed_means_recording_afresh(tmp_path: Path) -> None:
    recorded(tmp_path, [crops(1), crops(2)])
    path = sorted(tmp_path.glob("*.npz"))[1]
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    assert (opened(tmp_path).whole, "is damaged" in opened(tmp_path).reason) == (False, True)
    path.unlink()
    assert (opened(tmp_path).whole, "No such file" in opened(tmp_path).reason) == (False, True)
    path.write_bytes(content)
    assert opened(tmp_path).whole


def test_feed_that_changes_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    store = recorded(tmp_path, [crops(1), crops(2)])
    sorted(tmp_path.glob("*.npz"))[1].write_bytes(b"")
    feeds = store.feeds()
    next(feeds)
    with pytest.raises(CalibrationRefused, match=r"000002\.npz is damaged"):
        next(feeds)


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b'{"v": 2}'])
def test_damaged_manifest_means_recording_afresh(tmp_path: Path, content: bytes) -> None:
    recorded(tmp_path, [crops(1)])
    (tmp_path / "manifest.json").write_bytes(content)
    assert opened(tmp_path).reason.startswith("their manifest cannot be read")


def test_manifest_cannot_lead_to_files_elsewhere(tmp_path: Path) -> None:
    recorded(tmp_path / "feeds", [crops(1)])
    path = tmp_path / "feeds" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["feeds"][0]["name"] = "../elsewhere.npz"
    path.write_text(json.dumps(manifest), encoding="ascii")
    assert not opened(tmp_path / "feeds").whole


def test_inputs_that_change_their_names_are_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.begin()
    store.sink(crops(1))
    with pytest.raises(CalibrationRefused, match="those before had"):
        store.sink({"picture": crops(1)["image"]})


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "feeds").write_text("a file")
    with pytest.raises(CalibrationRefused, match="feeds cannot be written"):
        opened(tmp_path / "feeds").begin()


def test_killed_recording_is_recorded_afresh(tmp_path: Path) -> None:
    recorded(tmp_path, [crops(1)])
    script = (
        "import sys, time, numpy as np; from pathlib import Path\n"
        "from edge_agent.calibrate.feed_store import FeedBinding, FeedStore\n"
        "store = FeedStore.open(Path(sys.argv[1]), FeedBinding({'model': 'new'}))\n"
        "store.begin()\n"
        "for n in range(5): store.sink({'image': np.full((1, 8, 8, 3), n, np.uint8)})\n"
        "print('here', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGKILL)
    for binding in (FeedBinding({"model": "new"}), FeedBinding(FACTS)):
        assert not FeedStore.open(tmp_path, binding).whole
    assert [int(feed["image"].max()) for feed in recorded(tmp_path, [crops(9)]).feeds()] == [9]
    assert len(list(tmp_path.glob("*.npz"))) == 1
