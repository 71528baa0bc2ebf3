"""ConfigControl: a configuration from afar on its way: heard, judged, kept, put on trial, in force or taken back.

Called by the main loop between two frames; until that begins, `hear` by the thread that answers meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from edge_agent import messages
from edge_agent.cameras.base import Clock
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.config import Config, changed_keys, is_live
from edge_agent.records import Message
from edge_agent.remote.allowed import wished_config
from edge_agent.remote.bucket import Bucket
from edge_agent.remote.config_store import ConfigStore, Past
from edge_agent.remote.desired import Desired, DesiredRefused, Refusal, parse_desired
from edge_agent.remote.in_force import InForce, look
from edge_agent.remote.judging import Judging
from edge_agent.remote.trial import Figures, Look, between, faults
from edge_agent.transports.base import Inbound

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
BEFORE_S = 60.0  # how far back the figures reach that a trial is compared with
SETTLING_SHARE = 1 / 3  # of the trial, at its beginning, in which cameras may still connect
WISHES_PER_MIN = 30  # more are not judged one by one, for each that is refused is written down: the newest waits
AGAIN_S = 30.0  # before a disk that took nothing is tried again
STARTING = ("starting", "building")  # the trial has not begun: nothing can be said yet

Code = Literal[200, 202, 400, 500]
Apply = Callable[[Config], None]


class Trial:
    """A configuration on trial: what was seen at its beginning, and once it had settled."""

    def __init__(self, old: Config, new: Config, before: Figures | None) -> None:
        self.old = old
        self.new = new
        self.before = before
        self._began: Look | None = None
        self._settled: Look | None = None

    def ended(self, seen: Look) -> Figures | None:
        """The figures to judge by, once the time is over; None until then."""
        if self._began is None:
            self._began = None if seen.pipeline in STARTING else seen
            return None
        elapsed_s, trial_s = seen.mono - self._began.mono, self.new.remote.trial_s
        if self._settled is None:
            self._settled = seen if elapsed_s >= SETTLING_SHARE * trial_s else None
            return None
        return between(self._settled, seen) if elapsed_s >= trial_s else None

    def left_s(self, now_mono: float) -> float | None:
        """Seconds until it is judged; None while its time has not begun."""
        began = self._began
        return None if began is None else max(0.0, began.mono + self.new.remote.trial_s - now_mono)


class ConfigControl:
    """`say` publishes a report. `restart` says why the process is to start afresh; None while it is not to."""

    def __init__(
        self,
        begun: InForce,
        store: ConfigStore,
        models_dir: Path,
        say: Callable[[Message], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = begun.config
        self.restart: str | None = None
        self._local = begun.local
        self._store = store
        self._models_dir = models_dir
        self._publish = say
        self._clock = clock
        self._wished = begun.wished
        self._judging = Judging(store.folder, None if begun.wished is None else begun.wished.text)
        self._problem = begun.problem
        self._waiting: tuple[bytes, bool] | None = None
        self._now_mono = 0.0
        self._bucket = Bucket(WISHES_PER_MIN, lambda: self._now_mono)
        self._journal = RepeatLog(log, Clock(monotonic=lambda: self._now_mono))
        self._looks: deque[Look] = deque(maxlen=int(BEFORE_S / LOOK_EVERY_S))
        self._trial: Trial | None = None
        self._not_before_mono = float("-inf")
        self._told: tuple[int | None, Code] | None = None
        self._token = None if begun.wished is None else begun.wished.token
        if begun.trial is not None:
            before = begun.trial.before
            old = look(begun.local, store, models_dir).config
            self._trial = Trial(old, begun.config, None if before is None else Figures.from_json(before))
        self._stamp = store.stamp()
        self._say_begun(begun)

    @property
    def version(self) -> int | None:
        """The version from afar that runs, be it on trial; None where the device's own settings do."""
        return None if self._wished is None else self._wished.version

    @property
    def on_trial(self) -> bool:
        """Whether it is on trial."""
        return self._trial is not None

    @property
    def trial_left_s(self) -> float | None:
        """Seconds until it is judged; None where none runs, or its time has not begun. Any thread."""
        trial = self._trial
        return None if trial is None else trial.left_s(self._now_mono)

    def hear(self, inbound: Inbound) -> None:
        """A wish has come; only the newest counts. An empty one is a retained message that was deleted."""
        if inbound.payload:
            self._waiting = (inbound.payload, inbound.retained)

    def attend(self, seen: Look, apply: Apply) -> None:
        """Goes on with what is under way; `seen`: the figures now; `apply` puts LIVE keys to use."""
        self._now_mono = seen.mono
        if not self._looks or seen.mono - self._looks[-1].mono >= LOOK_EVERY_S:
            self._looks.append(seen)
            self._look_at_store(apply)
        if self.restart is not None:
            return
        if self._trial is not None:
            if seen.mono >= self._not_before_mono:
                self._judge(self._trial, seen, apply)
        elif self._waiting is not None and self._bucket.take():
            (payload, retained), self._waiting = self._waiting, None
            self._consider(payload, retained, apply)

    # A wish

    def _consider(self, payload: bytes, retained: bool, apply: Apply) -> None:
        why = self._judging.fault(payload, self._local.remote.trial_starts)
        if why is not None:
            again = f"it is not judged again: {why}; another text is"
            self._refuse(payload, DesiredRefused([Refusal("", again)]), 500)
            return
        with self._judging.of(payload):
            self._judge_wish(payload, retained, apply)

    def _judge_wish(self, payload: bytes, retained: bool, apply: Apply) -> None:
        try:
            desired = parse_desired(payload, self._local.remote.max_bytes)
            if self._is_known(desired, retained):
                return
            config = wished_config(desired, self._local, self._models_dir)
        except DesiredRefused as exc:
            self._refuse(payload, exc)
            return
        changed = sorted(changed_keys(self.config, config))
        before = between(self._looks[0], self._looks[-1]) if self._looks else None
        try:
            self._store.stage(desired, None if before is None else before.to_json())
            if not changed:
                self._store.confirm()
        except OSError as exc:
            self._say(desired.version, 500, f"it cannot be kept, so it is not tried: {exc.strerror}", desired.token)
            return
        finally:
            self._stamp = self._store.stamp()
        self._begin_trial(desired, config, changed, before, apply)

    def _begin_trial(
        self, desired: Desired, config: Config, changed: list[str], before: Figures | None, apply: Apply
    ) -> None:
        """What was staged goes on trial: at once where every changed key is live, else with the next process."""
        if not all(is_live(key) for key in changed):
            self.restart = f"version {desired.version} from afar changes {_few(changed)}"
            self._say(desired.version, 202, f"on trial after a restart: {_few(changed)}", desired.token)
            return
        if changed:
            apply(config)
            self._trial = Trial(self.config, config, before)
        self.config, self._wished, self._problem = config, self._store.state().running, None
        self._token = desired.token
        self._looks.clear()
        code: Code = 202 if changed else 200
        self._say(desired.version, code, f"on trial: {_few(changed)}" if changed else "in force", desired.token)

    def _is_known(self, desired: Desired, retained: bool) -> bool:
        """Whether nothing is to be done, because this wish is in force already or was rolled back; it is answered.
        Raises DesiredRefused for one that is older than what is in force."""
        active = self._wished
        if active is not None and desired.digest == active.content:
            if desired.version > active.version:
                self._renumber(desired)
            token = desired.token if desired.token != self._token else None
            self._token = desired.token
            if token is not None or not retained or self._told != (desired.version, 200):
                self._say(desired.version, 200, "no change", token)
            return True
        past = self._store.state().rolled_back(desired)
        if past is not None:
            if not retained or self._told != (desired.version, 500):
                again = f"not tried again, it was rolled back: {past.reason}; a greater version is tried"
                self._say(desired.version, 500, again, None, rolled_back_from=desired.version)
            return True
        if active is not None and desired.version <= active.version:
            why = f"{desired.version} is stale: version {active.version} is in force, with another content"
            raise DesiredRefused([Refusal("version", why)], desired.version, desired.token)
        return False

    def _renumber(self, desired: Desired) -> None:
        try:
            self._wished = self._store.renumber(desired.version, desired.token).active
        except OSError as exc:
            log.warning("the version of the configuration cannot be noted: %s", exc.strerror)
        self._stamp = self._store.stamp()

    def _refuse(self, payload: bytes, refused: DesiredRefused, code: Code = 400) -> None:
        kept = payload if len(payload) <= self._local.remote.max_bytes else None
        try:
            self._store.refuse(kept, refused.version, str(refused), refused.token)
        except OSError as exc:
            text = f"a refused configuration cannot be kept: {exc.strerror}"
            self._journal.write(logging.WARNING, "not kept", text)
        self._stamp = self._store.stamp()
        count = len(refused.refusals)
        detail = str(refused.refusals[0]) if count == 1 else f"{count} reasons, see refused"
        self._journal.write(logging.WARNING, "refused", f"a configuration from afar is refused: {detail}")
        reasons = [(each.key, each.why) for each in refused.refusals]
        self._say(refused.version, code, detail, refused.token, refused=reasons)

    # A trial

    def _judge(self, trial: Trial, seen: Look, apply: Apply) -> None:
        figures = trial.ended(seen)
        if figures is None or self._wished is None:
            return
        found = faults(trial.old, trial.new, trial.before, figures)
        try:
            if found:
                self._take_back(trial, "; ".join(found), apply)
            else:
                self._store.confirm()
                log.info("version %d from afar has passed its trial", self._wished.version)
                self._trial = None
                self._say(self._wished.version, 200, "in force", self._token)
        except OSError as exc:
            log.error("how the trial ended cannot be written: %s", exc.strerror)  # noqa: TRY400
            self._not_before_mono = seen.mono + AGAIN_S
        self._stamp = self._store.stamp()

    def _take_back(self, trial: Trial, reason: str, apply: Apply) -> None:
        assert self._wished is not None
        failed = self._wished
        state = self._store.roll_back_trial(reason, told=True)
        log.error("version %d from afar is rolled back: %s", failed.version, reason)
        self._trial, self._wished = None, state.active
        changed = changed_keys(trial.new, trial.old)
        if all(is_live(key) for key in changed):
            apply(trial.old)
            self.config = trial.old
        else:
            self.restart = f"version {failed.version} from afar is rolled back"
        self._say(failed.version, 500, reason, failed.token, rolled_back_from=failed.version)

    def _look_at_store(self, apply: Apply) -> None:
        """Notices what a person has taken back, by `edge-agent config rollback` or on the page."""
        stamp = self._store.stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        state = self._store.state()
        if state.running == self._wished or self.restart is not None:
            return
        there = look(self._local, self._store, self._models_dir, on_trial=True)
        changed = changed_keys(self.config, there.config)
        if state.trial is not None or there.problem is not None or not all(is_live(key) for key in changed):
            self.restart = "the configuration was changed by hand"
            return
        apply(there.config)
        self.config, self._wished, self._trial = there.config, there.wished, None
        self._looks.clear()
        taken = next((past for past in reversed(state.past) if past.outcome == "rolled_back"), None)
        if taken is not None:
            self._say(taken.version, 500, taken.reason, taken.token, rolled_back_from=taken.version)

    # Reports

    def _say_begun(self, begun: InForce) -> None:
        """What is to be told at the start of a process."""
        untold = [past for past in self._store.state().past if not past.told]
        if untold:
            self._say_rolled_back(untold[-1])
        elif begun.problem is not None:
            self._say(None, 400, begun.problem, None)
        elif begun.wished is not None and begun.trial is not None:
            self._say(begun.wished.version, 202, "on trial", begun.wished.token)
        elif begun.wished is not None:
            self._say(begun.wished.version, 200, "in force", None)

    def _say_rolled_back(self, past: Past) -> None:
        self._say(past.version, 500, past.reason, past.token, rolled_back_from=past.version)
        try:
            self._store.all_told()
        except OSError as exc:
            log.warning("that a rollback was told cannot be noted: %s", exc.strerror)
        self._stamp = self._store.stamp()

    def _say(
        self,
        version: int | None,
        code: Code,
        detail: str,
        token: str | None,
        rolled_back_from: int | None = None,
        refused: list[tuple[str, str]] | None = None,
    ) -> None:
        active = None if self._problem else self._store.state().active
        self._told = (version, code)
        self._publish(
            messages.config_reported(
                version,
                code,
                detail=detail,
                token=token,
                active_version=None if active is None else active.version,
                rolled_back_from=rolled_back_from,
                refused=refused or (),
                at=self._clock(),
            )
        )


def _few(keys: list[str], most: int = 8) -> str:
    """Keys for people; of many the first."""
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return (", ".join(keys[:most]) or "nothing") + more
