"""ConfigControl: a wish is refused with reasons, or tried, and kept or taken back; each step is told."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config, rebuilt
from edge_agent.models.spec import DEFAULT_MODELS_DIR
from edge_agent.records import Message
from edge_agent.remote import config_control, in_force
from edge_agent.remote.config_control import ConfigControl
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.in_force import begin
from edge_agent.remote.judging import Judging
from edge_agent.remote.trial import Look
from edge_agent.transports.base import Inbound
from tests.conftest import ROOT

MODELS = ROOT / DEFAULT_MODELS_DIR
TRIAL_S = 9.0


class Device:
    """A device: its file, its store, and a process that sees `fps` frames a second of one camera."""

    def __init__(self, folder: Path, **remote: Any) -> None:
        cameras = {"a": {"kind": "folder", "source": "/a"}}
        values = {"cameras": cameras, "remote": {"trial_s": TRIAL_S, "max_bytes": 2048, **remote}}
        self.local = rebuilt(Config(), values, "settings")
        self.store = ConfigStore(folder / "config")
        self.mono = 1000.0
        self.frames = self.text = 0.0
        self.fps, self.share, self.camera, self.pipeline = 10.0, 1.0, "online", "running"
        self.said: list[dict[str, Any]] = []
        self.applied: list[Config] = []
        self.start()

    def start(self) -> None:
        """A process begins."""
        begun = begin(self.local, self.store, MODELS)
        self.control = ConfigControl(begun, self.store, MODELS, self.hear, lambda: 1_796_040_000.0)

    def hear(self, message: Message) -> None:
        assert (message.topic, message.retain, message.qos) == ("config/reported", True, 1)
        self.said.append(json.loads(message.payload))

    def send(self, *, retained: bool = False, seconds: float = 1.0, **members: Any) -> None:
        self.send_text(json.dumps(members).encode(), retained=retained)
        self.run(seconds)

    def send_text(self, text: bytes, *, retained: bool = False) -> None:
        self.control.hear(Inbound("config/desired", text, retained))

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds * 4)):
            self.mono += 0.25
            self.frames += self.fps / 4
            self.text += self.fps * self.share / 4
            look = Look(self.mono, {"a": int(self.frames)}, {"a": int(self.text)}, {"a": self.camera}, self.pipeline)
            self.control.attend(look, self.applied.append)

    def told(self) -> list[tuple[Any, ...]]:
        """What was told since the last time: code, version, token, active version, rolled back from."""
        said, self.said = self.said, []
        members = ("code", "version", "token", "active_version", "rolled_back_from")
        return [tuple(each[name] for name in members) for each in said]


@pytest.fixture
def device(tmp_path: Path) -> Device:
    device = Device(tmp_path)
    device.run(10)
    return device


LIVE_PATCH = {"pipeline": {"min_confidence": 0.7}}


def test_live_wish_is_applied_tried_and_kept_without_a_restart(device: Device) -> None:
    device.send(version=4, token="t-4", patch=LIVE_PATCH)
    assert device.told() == [(202, 4, "t-4", None, None)]
    assert [config.pipeline.min_confidence for config in device.applied] == [0.7]
    assert (device.control.version, device.control.on_trial) == (4, True)
    device.run(TRIAL_S + 2)
    assert device.told() == [(200, 4, "t-4", 4, None)]
    assert (device.control.version, device.control.on_trial, device.control.restart) == (4, False, None)
    device.start()
    assert device.control.config.pipeline.min_confidence == 0.7
    assert device.told() == [(200, 4, None, 4, None)]  # the token was for the change alone


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ({"fps": 0.0}, "0.00 frames/s were read"),
        ({"fps": 3.0}, "3.00 frames/s were read, 10.00 before"),
        ({"share": 0.1}, "text was found in 10% of the frames"),
        ({"camera": "offline"}, "camera a is not online, and was before"),
        ({"pipeline": "degraded"}, "the pipeline is degraded"),
    ],
)
def test_wish_that_does_harm_is_taken_back_with_the_reason(device: Device, harm: dict[str, Any], says: str) -> None:
    device.send(version=4, token="t-4", patch=LIVE_PATCH)
    for name, value in harm.items():
        setattr(device, name, value)
    device.run(TRIAL_S + 2)
    assert says in device.said[-1]["detail"]
    assert device.told() == [(202, 4, "t-4", None, None), (500, 4, "t-4", None, 4)]
    assert [config.pipeline.min_confidence for config in device.applied] == [0.7, 0.5]
    assert (device.control.version, device.control.restart) == (None, None)
    assert says in device.store.state().past[-1].reason
    text = device.store.state().past[-1].text
    assert json.loads(device.store.text(str(text)))["version"] == 4


def test_wish_that_was_taken_back_is_not_tried_again_until_its_version_grows(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.fps = 0.0
    device.run(TRIAL_S + 2)
    device.fps = 10.0
    device.run(70)
    device.told()
    stamp = device.store.stamp()
    device.send(version=4, token="x", patch=LIVE_PATCH, retained=True)
    assert device.told() == []  # the retained report says it already
    device.send(version=4, token="x", patch=LIVE_PATCH)
    assert device.told() == [(500, 4, None, None, 4)]
    assert device.store.stamp() == stamp
    device.send(version=5, token="y", patch=LIVE_PATCH)
    assert device.told() == [(202, 5, "y", None, None)]


def test_same_content_again_is_no_change(device: Device) -> None:
    device.send(version=4, token="t-4", patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.told()
    stamp = device.store.stamp()
    device.send(version=4, token="t-4", patch=LIVE_PATCH, retained=True)
    assert device.told() == []
    device.send(version=4, token="t-4", patch=LIVE_PATCH)
    assert device.told() == [(200, 4, None, 4, None)]
    device.send(version=4, token="other", patch=LIVE_PATCH)
    assert device.told() == [(200, 4, "other", 4, None)]
    device.send(version=4, token="other", patch=LIVE_PATCH)
    assert device.told() == [(200, 4, None, 4, None)]
    device.send(version=3, patch=LIVE_PATCH)
    assert device.told() == [(200, 3, None, 4, None)]
    assert device.store.stamp() == stamp
    assert len(device.applied) == 1


def test_same_content_under_a_greater_version_takes_its_number_and_no_more(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.told()
    device.send(version=9, token="t-9", patch=LIVE_PATCH)
    assert device.told() == [(200, 9, "t-9", 9, None)]
    assert (device.control.version, len(device.applied)) == (9, 1)
    device.send(version=8, patch={"pipeline": {"min_confidence": 0.8}})
    assert device.told() == [(400, 8, None, 9, None)]


@pytest.mark.parametrize("version", [1, 3, 4])
def test_stale_version_is_refused(device: Device, version: int) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.told()
    device.send(version=version, token="late", patch={"log": {"level": "debug"}})
    assert device.said[-1]["refused"][0]["why"].startswith(f"{version} is stale: version 4 is in force")
    assert device.told() == [(400, version, "late", 4, None)]


def test_refused_wish_names_each_key_and_its_text_is_kept_once(device: Device) -> None:
    bad = {"mqtt": {"host": "evil.example"}, "log": {"file": "/x"}, "pipeline": {"min_confidence": 0.7}}
    device.send(version=4, token="t-4", patch=bad)
    (said,) = device.said
    assert {each["key"] for each in said["refused"]} == {"mqtt.host", "log.file"}
    assert device.told() == [(400, 4, "t-4", None, None)]
    assert device.applied == []
    (past,) = device.store.state().past
    assert json.loads(device.store.text(str(past.text)))["patch"] == bad
    stamp = device.store.stamp()
    device.send(version=4, token="t-4", patch=bad)
    assert device.store.stamp() == stamp


@pytest.mark.parametrize(
    "text", [b"{", b"\xff", b"x" * 4096, b'{"version": 4, "patch": {"fields": {"max_fields": NaN}}}']
)
def test_text_that_cannot_be_read_is_refused_and_changes_nothing(device: Device, text: bytes) -> None:
    device.send_text(text)
    device.run(1)
    assert device.said[-1]["code"] == 400
    assert device.applied == []
    assert device.control.restart is None


def test_deleted_retained_wish_changes_nothing(device: Device) -> None:
    device.send_text(b"")
    device.run(1)
    assert device.told() == []


def test_only_the_newest_wish_counts_and_one_that_comes_during_a_trial_waits(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.send(version=5, patch={"pipeline": {"min_confidence": 0.8}})
    device.send(version=6, patch={"pipeline": {"min_confidence": 0.9}})
    assert device.told() == [(202, 4, None, None, None)]
    device.run(TRIAL_S + 2)
    assert device.told() == [(200, 4, None, 4, None), (202, 6, None, 4, None)]


def test_flood_of_wishes_is_not_written_down_one_by_one_and_the_newest_is_judged(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(200):
        device.send_text(b"nonsense %d" % n)
        device.run(0.25)
    assert len(device.said) < 40
    assert 0 < len([text for text in caplog.messages if "is refused" in text]) < 6
    device.send(version=4, patch=LIVE_PATCH, seconds=4)
    assert device.told()[-1] == (202, 4, None, None, None)


def test_wish_that_makes_no_difference_is_in_force_at_once(device: Device) -> None:
    device.send(version=4, token="t", patch={"pipeline": {"min_confidence": 0.5}})
    assert device.told() == [(200, 4, "t", 4, None)]
    assert device.applied == []
    assert device.control.version == 4


def test_wish_replaces_the_one_before_it(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.send(version=5, patch={"log": {"level": "debug"}})
    device.run(TRIAL_S + 2)
    config = device.control.config
    assert (config.pipeline.min_confidence, config.log.level) == (0.5, "debug")


# ---- with a restart -------------------------------------------------------------------------------------------------

RESTART_PATCH = {"pipeline": {"detector_max_side_px": 960}}


def test_other_wish_is_tried_by_the_next_process(device: Device) -> None:
    device.send(version=4, token="t-4", patch=RESTART_PATCH)
    assert device.control.restart == "version 4 from afar changes pipeline.detector_max_side_px"
    assert device.told() == [(202, 4, "t-4", None, None)]
    assert (device.control.version, device.control.config) == (None, device.local)
    device.start()
    assert (device.control.version, device.control.on_trial) == (4, True)
    assert device.control.config.pipeline.detector_max_side_px == 960
    device.run(TRIAL_S + 2)
    assert device.told() == [(202, 4, "t-4", None, None), (200, 4, "t-4", 4, None)]


def test_failed_one_goes_back_by_a_restart_and_what_was_before_is_compared(device: Device) -> None:
    device.send(version=4, token="t-4", patch=RESTART_PATCH)
    device.start()
    device.fps = 2.0
    device.run(TRIAL_S + 2)
    assert "2.00 frames/s were read, 10.00 before" in device.said[-1]["detail"]
    assert device.told()[-1] == (500, 4, "t-4", None, 4)
    assert device.control.restart == "version 4 from afar is rolled back"
    device.start()
    assert (device.control.version, device.control.config) == (None, device.local)
    assert device.told() == []


def test_time_in_which_plans_are_built_is_not_the_trial(device: Device) -> None:
    device.send(version=4, patch=RESTART_PATCH)
    device.start()
    device.pipeline, device.fps = "building", 1.0
    device.run(10 * TRIAL_S)
    assert device.control.on_trial
    device.pipeline, device.fps = "running", 10.0
    device.run(TRIAL_S + 2)
    assert device.told()[-1] == (200, 4, None, 4, None)


def test_processes_that_die_under_a_trial_are_counted_and_it_is_given_up(device: Device) -> None:
    device.send(version=4, token="t-4", patch=RESTART_PATCH)
    device.told()
    for _ in range(3):
        device.start()  # ends without a word each time
        assert device.control.on_trial
    device.told()
    device.start()
    assert not device.control.on_trial
    assert device.control.config == device.local
    assert "3 processes ended untidily" in device.said[-1]["detail"]
    assert device.told() == [(500, 4, "t-4", None, 4)]
    device.start()
    assert device.told() == []


def test_trial_whose_process_failed_is_told_by_the_next_one_once(device: Device) -> None:
    device.send(version=4, token="t-4", patch=RESTART_PATCH)
    device.start()
    device.told()
    device.store.roll_back_trial("EngineError: out of memory")
    device.start()
    assert device.said[-1]["detail"] == "EngineError: out of memory"
    assert device.told() == [(500, 4, "t-4", None, 4)]
    device.start()
    assert device.told() == []


# ---- a wish that ends the process while it is judged -----------------------------------------------------------------


def test_wish_whose_judging_ends_the_process_by_an_error_is_refused_by_the_next_one(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"version": 4, "token": "t", "patch": LIVE_PATCH}).encode()

    def broken(*_: object) -> None:
        raise KeyError("nobody foresaw this")

    with monkeypatch.context() as patch:
        patch.setattr(config_control, "wished_config", broken)
        device.send_text(text, retained=True)
        with pytest.raises(KeyError):
            device.run(1)
        for _ in range(2):  # the retained wish comes again with each connect
            device.start()
            device.send_text(text, retained=True)
            device.run(1)
            assert "judging it has ended the process: KeyError: 'nobody foresaw this'" in device.said[-1]["detail"]
            assert device.told() == [(500, None, None, None, None)]
    (past,) = device.store.state().past
    assert device.store.text(str(past.text)) == text
    device.send(version=5, patch=LIVE_PATCH)
    assert device.told() == [(202, 5, None, None, None)]


def test_wish_under_which_processes_die_without_a_word_while_it_is_judged_is_refused_in_the_end(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"version": 4, "patch": LIVE_PATCH}).encode()

    class Killed(BaseException):
        """As by SIGKILL: nothing more is written."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(config_control, "wished_config", killed)
        for _ in range(3):
            device.send_text(text, retained=True)
            with pytest.raises(Killed):
                device.run(1)
            device.start()
        device.send_text(text, retained=True)
        device.run(1)
    assert "3 processes ended while they judged it" in device.said[-1]["detail"]
    assert device.told() == [(500, None, None, None, None)]


def test_power_cut_while_a_wish_is_judged_does_not_refuse_it(device: Device) -> None:
    text = json.dumps({"version": 4, "patch": LIVE_PATCH}).encode()
    with suppress(SystemExit), Judging(device.store.folder).of(text):
        raise SystemExit
    device.send_text(text)
    device.run(1)
    assert device.told() == [(202, 4, None, None, None)]
    assert not (device.store.folder / "judging.json").exists()


def test_wish_that_ends_each_process_at_its_start_is_counted_before_and_given_up(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.send(version=4, token="t-4", patch=RESTART_PATCH)
    device.told()

    def broken(*_: object) -> None:
        raise KeyError("nobody foresaw this")

    with monkeypatch.context() as patch:
        patch.setattr(in_force, "wished_config", broken)
        for _ in range(3):
            with pytest.raises(KeyError):
                device.start()
        device.start()
    assert device.told() == [(500, 4, "t-4", None, 4)]
    assert device.control.config == device.local


# ---- the device's own file, people and the disk ---------------------------------------------------------------------


def test_active_wish_that_does_not_go_with_the_file_any_more_is_not_in_force(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    device.send(version=4, patch={"pipeline": {"detector_max_side_px": 960}})
    device.start()
    device.run(TRIAL_S + 2)
    device.told()
    good, device.local = device.local, rebuilt(device.local, {"pipeline": {"detector_min_side_px": 1500}}, "file")
    device.start()
    assert "version 4 from afar is not in force, the file of settings alone is" in caplog.text
    assert "detector_min_side_px: 1500 is greater than" in device.said[-1]["detail"]
    assert device.told() == [(400, None, None, None, None)]
    assert device.control.config == device.local
    device.run(5)
    assert device.control.restart is None
    device.local = good  # mended
    device.start()
    assert device.control.version == 4


def test_key_that_the_file_no_longer_allows_is_not_in_force(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.local = rebuilt(device.local, {"remote": {"allowed_keys": ["log"]}}, "file")
    device.start()
    assert device.control.config == device.local
    assert "pipeline.min_confidence: is not among remote.allowed_keys" in device.said[-1]["detail"]


def test_file_that_was_edited_stays_below_what_came_from_afar(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.local = rebuilt(device.local, {"cameras": {}, "pipeline": {"min_confidence": 0.1, "max_boxes": 7}}, "file")
    device.start()
    pipeline = device.control.config.pipeline
    assert (pipeline.min_confidence, pipeline.max_boxes) == (0.7, 7)


def test_rollback_by_hand_is_noticed_and_the_retained_wish_does_not_undo_it(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.told()
    ConfigStore(device.store.folder).go_back("by hand")
    device.run(2)
    assert device.control.restart is None
    assert device.applied[-1] == device.control.config == device.local
    assert device.told() == [(500, 4, None, None, 4)]
    device.send(version=4, patch=LIVE_PATCH, retained=True)
    device.start()
    device.send(version=4, patch=LIVE_PATCH, retained=True)
    assert device.control.config == device.local


def test_rollback_by_hand_during_a_trial_ends_it_at_once(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(2)
    left_s = device.control.trial_left_s
    assert left_s is not None
    assert TRIAL_S - 3 <= left_s <= TRIAL_S - 1
    ConfigStore(device.store.folder).go_back("by hand")
    device.run(TRIAL_S + 2)
    assert (device.control.on_trial, device.control.trial_left_s) == (False, None)
    assert device.control.config == device.local
    assert device.told()[-1] == (500, 4, None, None, 4)


def test_rollback_by_hand_of_what_is_not_live_starts_afresh(device: Device) -> None:
    device.send(version=4, patch=RESTART_PATCH)
    device.start()
    device.run(TRIAL_S + 2)
    ConfigStore(device.store.folder).go_back("by hand")
    device.run(2)
    assert device.control.restart == "the configuration was changed by hand"
    device.start()
    assert device.control.config == device.local


def test_what_others_write_without_changing_what_runs_is_no_reason_to_restart(device: Device) -> None:
    ConfigStore(device.store.folder).refuse(b"x", None, "no")
    device.run(3)
    assert device.control.restart is None


def test_disk_that_takes_nothing_refuses_the_wish_and_goes_on(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edge_agent.remote.config_store.write_atomically", full)
    device.send(version=4, token="t", patch=LIVE_PATCH)
    assert "No space left" in device.said[-1]["detail"]
    assert device.told() == [(500, 4, "t", None, None)]
    assert device.applied == []
    device.send_text(b"nonsense")
    device.run(1)
    assert device.told() == [(400, None, None, None, None)]


def test_disk_that_fills_up_during_a_trial_is_tried_again(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.told()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("edge_agent.remote.config_store.write_atomically", full)
        device.run(TRIAL_S + 2)
        assert device.told() == []
    device.run(31)
    assert device.told() == [(200, 4, None, 4, None)]


def test_what_came_from_afar_is_not_in_force_where_it_is_switched_off(device: Device) -> None:
    device.send(version=4, patch=LIVE_PATCH)
    device.run(TRIAL_S + 2)
    device.local = rebuilt(device.local, {"remote": {"enabled": False}}, "file")
    assert begin(device.local, device.store, MODELS).config == device.local


def test_start_goes_on_with_the_last_good_one_where_a_rollback_cannot_be_written(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.send(version=4, patch=RESTART_PATCH)
    device.local = rebuilt(device.local, {"remote": {"allowed_keys": ["log"]}}, "file")

    def full(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("edge_agent.remote.config_store.write_atomically", full)
    device.start()
    assert (device.control.config, device.control.on_trial) == (device.local, False)


def test_trial_is_not_begun_where_its_starts_cannot_be_counted(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    device.send(version=4, patch=RESTART_PATCH)

    def full(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("edge_agent.remote.config_store.write_atomically", full)
    device.start()
    assert (device.control.config, device.control.on_trial) == (device.local, False)
    device.run(5)
    assert device.control.restart is None
