"""ConfigStore: whatever ends the process, the old or the new configuration is there, whole, and known which."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config, changed_keys
from edge_agent.errors import ConfigError
from edge_agent.remote.config_store import ConfigStore, State
from edge_agent.remote.desired import Desired, parse_desired
from edge_agent.remote.in_force import begin
from tests.conftest import ROOT


def wish(version: int, level: str = "debug") -> Desired:
    return parse_desired(json.dumps({"version": version, "patch": {"log": {"level": level}}}).encode(), 65_536)


@pytest.fixture
def store(tmp_path: Path) -> ConfigStore:
    return ConfigStore(tmp_path / "config", kept=4, clock=lambda: 1_796_040_000.0)


def texts(store: ConfigStore) -> int:
    folder = store.folder / "texts"
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_nothing_is_there_at_first(store: ConfigStore) -> None:
    assert store.state() == State()
    assert store.stamp() is None
    assert not store.folder.exists()


def test_wish_is_on_trial_then_in_force_and_can_be_read_again(store: ConfigStore) -> None:
    trial = store.stage(wish(4), {"fps": {"left": 9.5}}).trial
    assert trial is not None
    assert trial.before == {"fps": {"left": 9.5}}
    assert store.state().running == trial.wished
    state = store.confirm()
    assert (state.active, state.previous, state.trial) == (trial.wished, None, None)
    assert store.desired(trial.wished) == wish(4)
    assert ConfigStore(store.folder).state() == state


def test_failed_trial_leaves_what_was_and_is_remembered_with_its_text(store: ConfigStore) -> None:
    store.stage(wish(4), None)
    active = store.confirm().active
    store.stage(wish(5, "error"), None)
    state = store.roll_back_trial("no frame came")
    assert (state.active, state.trial) == (active, None)
    past = state.rolled_back(wish(5, "error"))
    assert past is not None
    assert (past.outcome, past.reason, past.version) == ("rolled_back", "no frame came", 5)
    assert store.text(str(past.text)) == wish(5, "error").text
    assert state.rolled_back(wish(6, "error")) is None
    assert state.rolled_back(wish(5, "info")) is None


def test_starts_of_a_trial_are_counted_and_a_tidy_stop_is_no_failure(store: ConfigStore) -> None:
    assert store.count_start() == 0
    store.stage(wish(4), None)
    assert [store.count_start(), store.count_start()] == [1, 2]
    store.tidy_stop()
    assert store.count_start() == 1


def test_flood_of_refused_texts_does_not_push_out_what_was_rolled_back(store: ConfigStore) -> None:
    """Else the retained wish would be tried once more at the next connect."""
    store.stage(wish(7), None)
    store.roll_back_trial("too slow", told=True)
    for n in range(8):
        store.refuse(b"nonsense %d" % n, None, "no JSON")
    state = store.state()
    assert state.rolled_back(wish(7)) is not None
    assert [each.outcome for each in state.past] == ["rolled_back", "refused", "refused", "refused"]
    for n in range(8):
        store.stage(wish(8 + n), None)
        store.roll_back_trial("too slow", told=True)
    assert [each.outcome for each in store.state().past] == ["refused", "refused", "rolled_back", "rolled_back"]
    texts = {path.name for path in (store.folder / "texts").iterdir()}
    assert texts == {each.text for each in store.state().past}


def test_refused_text_is_kept_once(store: ConfigStore) -> None:
    assert store.refuse(b"{nonsense", None, "is not JSON")
    stamp = store.stamp()
    assert not store.refuse(b"{nonsense", None, "is not JSON")
    assert store.stamp() == stamp
    (past,) = store.state().past
    assert store.text(str(past.text)) == b"{nonsense"
    assert store.refuse(None, None, "70000 bytes")
    assert store.state().past[-1].text is None


def test_what_is_remembered_is_bounded(store: ConfigStore) -> None:
    for n in range(10):
        store.refuse(b"%d" % n, None, "no")
    assert [store.text(str(past.text)) for past in store.state().past] == [b"6", b"7", b"8", b"9"]
    assert texts(store) == 4


def test_going_back_takes_the_trial_then_the_active_one_then_nothing(store: ConfigStore) -> None:
    for version in (4, 5):
        store.stage(wish(version), None)
        store.confirm()
    store.stage(wish(6), None)

    def running() -> int | None:
        wished = store.state().running
        return None if wished is None else wished.version

    assert running() == 6
    seen = []
    for _ in range(3):
        store.go_back("by hand")
        seen.append(running())
    assert seen == [5, 4, None]
    assert store.state().rolled_back(wish(6)) is not None


def test_going_back_to_the_file_takes_everything(store: ConfigStore) -> None:
    store.stage(wish(4), None)
    store.confirm()
    store.stage(wish(5), None)
    state = store.go_back("by hand", to_file=True)
    assert (state.active, state.previous, state.trial) == (None, None, None)
    assert state.rolled_back(wish(4)) is not None
    assert state.rolled_back(wish(5)) is not None


def test_same_content_under_a_greater_version_keeps_its_text(store: ConfigStore) -> None:
    store.stage(wish(4), None)
    store.confirm()
    state = store.renumber(9, "t-9")
    assert state.active is not None
    assert (state.active.version, state.active.token) == (9, "t-9")
    assert store.desired(state.active).version == 9


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"v": 2}', b'{"v": 1, "active": 3}', b"\0" * 4096, b"[" * 99_999, b'{"v": 1, "x": 0}'],
)
def test_damaged_state_is_put_aside_aloud(store: ConfigStore, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    store.stage(wish(4), None)
    store.state_path.write_bytes(content)
    assert store.state() == State()
    assert "is damaged" in caplog.text
    assert store.state_path.with_suffix(".damaged").read_bytes() == content
    assert store.stage(wish(5), None).trial is not None


def test_damaged_or_missing_text_is_named(store: ConfigStore) -> None:
    wished = store.stage(wish(4), None).running
    assert wished is not None
    path = store.folder / "texts" / wished.text
    path.write_bytes(b"{}")
    with pytest.raises(ConfigError, match="is damaged"):
        store.desired(wished)
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        store.desired(wished)


def test_others_can_read_nothing(store: ConfigStore) -> None:
    store.stage(wish(4), None)
    assert store.folder.stat().st_mode & 0o077 == 0
    for path in store.folder.rglob("*"):
        assert path.is_dir() or path.stat().st_mode & 0o077 == 0, path


# ---- SIGKILL at every operation on the disk -------------------------------------------------------------------------


def counted(operation: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """The operation, before which the process ends by SIGKILL once none is left."""

    def instead(*args: Any, **more: Any) -> Any:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return operation(*args, **more)

    return instead


def run_child(folder: Path, change: str, operations: int) -> tuple[int, int]:
    """Makes the change in a child that is killed before so many operations on the disk: its exit code, how many it
    made."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        left = [operations]
        for name in ("mkdir", "replace", "unlink", "chmod"):
            setattr(Path, name, counted(getattr(Path, name), left))
        for name in ("fsync", "open", "close"):
            setattr(os, name, counted(getattr(os, name), left))
        try:
            make(ConfigStore(folder, kept=1, clock=lambda: 7.0), change)
            os.write(writing, str(operations - left[0]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        made = told.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), int(made or -1)


def make(store: ConfigStore, change: str) -> None:
    changes: dict[str, Callable[[], object]] = {
        "stage": lambda: store.stage(wish(5, "error"), None),
        "count_start": store.count_start,
        "confirm": store.confirm,
        "roll_back_trial": lambda: store.roll_back_trial("it failed"),
        "refuse": lambda: store.refuse(b"nonsense", None, "no"),
        "go_back": lambda: store.go_back("by hand"),
    }
    changes[change]()


def before_change(folder: Path, change: str) -> ConfigStore:
    store = ConfigStore(folder, kept=1, clock=lambda: 7.0)
    store.stage(wish(4), None)
    store.confirm()
    store.refuse(b"older nonsense", None, "no")
    if change in ("count_start", "confirm", "roll_back_trial"):
        store.stage(wish(5, "error"), None)
    return store


@pytest.mark.parametrize("change", ["stage", "count_start", "confirm", "roll_back_trial", "refuse", "go_back"])
def test_killed_at_any_operation_the_old_or_the_new_state_is_there_whole(tmp_path: Path, change: str) -> None:
    whole = before_change(tmp_path / "whole", change)
    old = whole.state()
    code, operations = run_child(whole.folder, change, 10_000)
    new = whole.state()
    assert (code, new != old) == (0, True)
    assert operations >= 5
    seen = []
    for n in range(operations):
        store = before_change(tmp_path / str(n), change)
        assert run_child(store.folder, change, n)[0] == -signal.SIGKILL
        state = store.state()
        assert state in (old, new), f"killed before operation {n}"
        seen.append(state == new)
        for wished in (state.active, state.previous, state.running):
            assert wished is None or store.desired(wished).version == wished.version
        begun = begin(Config(), ConfigStore(store.folder, kept=1), Path("engines"))
        assert begun.problem is None
        assert begun.wished == state.running
        level = {None: "info", 4: "debug", 5: "error"}[None if state.running is None else state.running.version]
        assert changed_keys(Config(), begun.config) == ({"log.level"} if level != "info" else set())
        assert begun.config.log.level == level
        assert [store.text(str(past.text)) for past in state.past]
        make(store, change)  # the next one goes on: no lock, no remains in the way
    assert seen == sorted(seen), "once new, it stays new"
    assert not seen[0]
    _no_remains(whole)


def _no_remains(store: ConfigStore) -> None:
    assert not [path for path in store.folder.rglob("*") if path.name.startswith(".")]


def test_full_disk_leaves_the_old_state(store: ConfigStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.stage(wish(4), None)
    old = store.confirm()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.stage(wish(5), None)
    assert store.state() == old
    _no_remains(store)


def test_two_processes_change_it_one_at_a_time(store: ConfigStore) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom edge_agent.remote.config_store import ConfigStore\n"
        "store = ConfigStore(Path(sys.argv[1]), kept=100)\n"
        "for n in range(10): store.refuse(f'{sys.argv[2]}-{n}'.encode(), None, sys.argv[2])\n"
    )
    command = [sys.executable, "-c", code, str(store.folder)]
    children = [subprocess.Popen([*command, name], cwd=ROOT) for name in ("a", "b")]
    assert [child.wait(60) for child in children] == [0, 0]
    assert sorted(past.reason for past in store.state().past) == ["a"] * 10 + ["b"] * 10
    assert texts(store) == 20
