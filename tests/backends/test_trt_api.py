"""What differs between TensorRT versions: one test per difference, over all versions."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from edge_agent.backends.plan import BuildOptions
from edge_agent.errors import ConfigError
from tests.backends import fake_trt

EIGHT, TEN, TEN_16, ELEVEN = fake_trt.VERSIONS


@pytest.fixture(params=fake_trt.VERSIONS)
def trt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, request.param)


@pytest.fixture
def config(trt: Any) -> Any:
    return trt.IBuilderConfig()


def loaded(trt: Any, **plan: Any) -> Any:
    messages = trt.api.LastMessages()
    return trt.api.deserialise(fake_trt.plan(**plan), trt.api.make_logger(messages), messages)[1]


def test_supported_versions_are_taken(trt: Any) -> None:
    assert trt.api.require_supported() == trt.__version__


@pytest.mark.parametrize("version", ["8.5.2", "8.4.1", "7.1.3"])
def test_older_versions_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    trt = fake_trt.install(monkeypatch, version)
    with pytest.raises(ConfigError, match=rf"TensorRT {version} is not supported; supported are .*JetPack 6"):
        trt.api.require_supported()


def test_bindings_with_only_binding_indices_are_refused_by_what_they_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trt = fake_trt.install(monkeypatch, TEN)
    monkeypatch.delattr(trt.IExecutionContext, "execute_async_v3")
    with pytest.raises(ConfigError, match=r"lacks IExecutionContext\.execute_async_v3"):
        trt.api.require_supported()


def test_network_has_an_explicit_batch_where_that_is_a_choice_and_never_another_flag(trt: Any) -> None:
    assert trt.api.network_flags() == (0 if trt.__version__ == ELEVEN else 1)


@pytest.mark.parametrize(("precision", "flags"), [("fp32", set()), ("fp16", {"FP16"}), ("int8", {"INT8", "FP16"})])
def test_precision_is_a_builder_flag_until_it_lives_in_the_graph(
    trt: Any, config: Any, precision: Any, flags: set[str]
) -> None:
    trt.api.set_precision(config, BuildOptions(precision))
    assert trt.api.strongly_typed_only() == (trt.__version__ == ELEVEN)
    assert config.flags == (set() if trt.__version__ == ELEVEN else flags)


def test_tactic_sources_are_a_mask_of_those_the_version_knows(trt: Any, config: Any) -> None:
    trt.api.set_tactic_sources(config, ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"))
    assert trt.seen["tactic_sources"] == 0b11000
    if trt.__version__ == ELEVEN:
        with pytest.raises(ConfigError, match="no tactic source 'CUBLAS'; it has EDGE_MASK_CONVOLUTIONS"):
            trt.api.set_tactic_sources(config, ("CUBLAS",))
    else:
        trt.api.set_tactic_sources(config, ("CUBLAS",))


def test_profiles_are_shared_by_contexts_where_that_must_be_asked_for(trt: Any, config: Any) -> None:
    trt.api.share_profiles(config)
    assert config.preview == ({"PROFILE_SHARING_0806": True} if trt.__version__ == EIGHT else {})


def test_hardware_compatibility_is_off_unless_wanted(trt: Any, config: Any) -> None:
    trt.api.set_hardware_compatibility(config, False)
    assert not hasattr(config, "hardware_compatibility_level")
    trt.api.set_hardware_compatibility(config, True)
    assert config.hardware_compatibility_level is trt.HardwareCompatibilityLevel.AMPERE_PLUS


def test_dla_core_that_is_not_there_is_refused_and_one_that_is_gets_a_gpu_fallback(trt: Any, config: Any) -> None:
    builder = trt.Builder(None)
    trt.api.use_dla(builder, config, None)
    with pytest.raises(ConfigError, match="finds 0 DLA cores"):
        trt.api.use_dla(builder, config, 0)
    assert config.flags == set()
    builder.num_DLA_cores = 2
    trt.api.use_dla(builder, config, 1)
    assert (config.default_device_type, config.DLA_core) == (trt.DeviceType.DLA, 1)
    assert config.flags == {"GPU_FALLBACK"}


def test_progress_is_watched_where_the_version_can_tell(trt: Any, config: Any) -> None:
    seen: list[tuple[str, int, int]] = []
    watched = trt.api.watch_progress(config, lambda *step: seen.append(step))
    assert watched == (trt.__version__ != EIGHT)
    if watched:
        monitor = config.progress_monitor
        monitor.phase_start("Tactics", "Building", 3)
        assert monitor.step_complete("Tactics", 0) is True
        monitor.phase_finish("Tactics")
        assert seen == [("Tactics", 0, 3), ("Tactics", 1, 3), ("Tactics", 3, 3)]


def test_scratch_size_is_found_under_its_name_of_the_day(trt: Any) -> None:
    assert trt.api.scratch_bytes(loaded(trt, scratch_bytes=12345), 0) == 12345


def test_context_takes_the_scratch_it_is_given(trt: Any) -> None:
    context = trt.api.create_context(loaded(trt))
    trt.api.set_scratch(context, 0xABC00, 4096)
    assert context.scratch[0] == 0xABC00


def test_second_profile_is_selected_whatever_a_fresh_context_starts_on(trt: Any) -> None:
    engine = loaded(trt, profiles=(((1, 8, 8, 3), (1, 8, 8, 3)), ((1, 8, 8, 3), (2, 8, 8, 3))))
    contexts = [trt.api.create_context(engine) for _ in range(2)]
    assert all(trt.api.select_profile(context, index, 7) for index, context in enumerate(contexts))
    assert [context.active_optimization_profile for context in contexts] == [0, 1]


def test_profiles_of_an_engine_are_plain_tuples(trt: Any) -> None:
    engine = loaded(trt)
    inputs, _ = trt.api.tensor_specs(engine)
    (profile,) = trt.api.engine_profiles(engine, inputs)
    assert profile.min == {"image": (1, 8, 8, 3)}
    assert profile.max == {"image": (4, 32, 32, 3)}


def test_loggers_last_words_are_kept_and_bounded(trt: Any, caplog: pytest.LogCaptureFixture) -> None:
    messages = trt.api.LastMessages()
    logger = trt.api.make_logger(messages)
    assert str(messages) == "TensorRT gave no reason"
    with caplog.at_level(logging.DEBUG):
        logger.log(fake_trt.Severity.INFO, "chatter")
        for n in range(100):
            logger.log(fake_trt.Severity.ERROR, f"failure {n}\n  at x")
    assert "chatter" not in str(messages)
    assert str(messages).endswith("ERROR: failure 98 at x | ERROR: failure 99 at x")
    assert len(str(messages)) < 600
    messages.clear()
    assert str(messages) == "TensorRT gave no reason"


def test_log_callback_survives_a_severity_without_a_name(trt: Any) -> None:
    messages = trt.api.LastMessages()
    trt.api.make_logger(messages).log("Severity.WARNING", "older bindings")
    assert "WARNING: older bindings" in str(messages)
