"""In force: what a process runs when it starts: the device's own settings, with what came from afar over them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from edge_agent.config import Config
from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.files import find_state_dir
from edge_agent.remote.allowed import wished_config
from edge_agent.remote.config_store import FOLDER, ConfigStore, OnTrial, Wished

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InForce:
    """`config` runs: `local`, changed by `wished` where that is not None, which is on `trial` where that is not None.

    `problem` says why what came from afar is not in force although it should be.
    """

    config: Config
    local: Config
    wished: Wished | None = None
    trial: OnTrial | None = None
    problem: str | None = None


def find_config_store(
    local: Config, config_file: Path, state_dir: Path | None = None, environ: Mapping[str, str] = os.environ
) -> ConfigStore:
    """The store in `state_dir`, else in the service's state directory, else in `state` beside the file of settings."""
    folder = state_dir or find_state_dir(config_file.absolute().parent, environ)
    return ConfigStore(folder / FOLDER, local.remote.kept_texts)


def begin(local: Config, store: ConfigStore, models_dir: Path) -> InForce:
    """What this process is to run; a trial that it begins with is counted as begun.

    A wish on trial that cannot be, or under which too many processes ended untidily, is rolled back. One that was
    active and does not go with the device's own settings any more is not in force, and that is said; it stays stored,
    for the settings may be mended.
    """
    if not local.remote.enabled:
        return InForce(local, local)
    trial = store.state().trial
    if trial is not None:
        begun = _begin_trial(trial, local, store, models_dir)
        if begun is not None:
            return begun
    there = look(local, store, models_dir)
    if there.problem is not None:
        log.error("%s", there.problem)
    return there


def look(local: Config, store: ConfigStore, models_dir: Path, *, on_trial: bool = False) -> InForce:
    """What is in force for good, or with `on_trial` what runs; changes nothing."""
    state = store.state()
    active = state.running if on_trial else state.active
    if active is None or not local.remote.enabled:
        return InForce(local, local)
    try:
        return InForce(wished_config(store.desired(active), local, models_dir), local, active)
    except ConfigError as exc:
        problem = f"version {active.version} from afar is not in force, the file of settings alone is: {exc}"
        return InForce(local, local, problem=problem)


def failed(begun: InForce, store: ConfigStore, error: EdgeAgentError) -> bool:
    """Whether an error that ended the process came of a wish on trial, which is then rolled back: the process is to
    start afresh, with the last good one."""
    trial = store.state().trial
    if trial is None or not begun.local.remote.enabled:
        return False
    reason = f"{type(error).__name__}: {error}"
    log.error("version %d from afar is rolled back: %s", trial.wished.version, reason)
    try:
        store.roll_back_trial(reason)
    except OSError as exc:
        log.error("that cannot be written: %s", exc.strerror)  # noqa: TRY400
        return False
    return True


def ended(begun: InForce, store: ConfigStore) -> None:
    """The process ends or starts afresh tidily: no failure of a wish on trial."""
    if begun.trial is not None:
        with suppress(OSError):
            store.tidy_stop()


def _begin_trial(trial: OnTrial, local: Config, store: ConfigStore, models_dir: Path) -> InForce | None:
    try:
        if trial.starts >= local.remote.trial_starts:
            reason = f"{trial.starts} processes ended untidily while it was on trial (remote.trial_starts)"
            _roll_back(store, trial, reason)
            return None
        store.count_start()  # first: what ends this process below, foreseen or not, is a start too
        config = wished_config(store.desired(trial.wished), local, models_dir)
    except ConfigError as exc:
        _roll_back(store, trial, str(exc))
        return None
    except OSError as exc:  # a start that cannot be counted could be made for ever
        log.error("version %d is not tried: %s", trial.wished.version, exc)  # noqa: TRY400
        return None
    return InForce(config, local, trial.wished, trial)


def _roll_back(store: ConfigStore, trial: OnTrial, reason: str) -> None:
    log.error("version %d from afar is rolled back: %s", trial.wished.version, reason)
    try:
        store.roll_back_trial(reason)
    except OSError as exc:  # the next start finds the same, and decides the same
        log.error("that cannot be written: %s", exc.strerror)  # noqa: TRY400
