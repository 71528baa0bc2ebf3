"""TrtBackend and TrtEngine over fakes of CUDA and TensorRT in every supported version; plans are real files."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.backends.base import Planned, Profile
from edge_agent.backends.plan import BuildOptions, PlanKey
from edge_agent.backends.plan_store import PlanUnusable
from edge_agent.backends.profiles import read_shapes, shapes_path
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.errors import ConfigError, EngineError, FrameError, ModelError
from tests.backends import fake_trt
from tests.backends.fake_cuda import FakeCuda, fake_gpu
from tests.backends.small_models import mean_colour

PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})


@pytest.fixture(params=fake_trt.VERSIONS)
def trt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, request.param)


@pytest.fixture
def ten(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, "10.3.0")


@pytest.fixture
def onnx_path(tmp_path: Path) -> Path:
    (tmp_path / "tiny").mkdir()
    return mean_colour(tmp_path / "tiny" / "model.onnx")


class Bench:
    """A backend with a stored plan, and what it is made of."""

    def __init__(self, trt: Any, tmp_path: Path, onnx_path: Path, gpu: Any = None, **settings: Any) -> None:
        self.trt, self.onnx_path = trt, onnx_path
        self.settings = TrtSettings(tmp_path / "plans", **settings)
        self.gpu = gpu or fake_gpu(trt.cuda)
        self.backend = trt.backend.TrtBackend(self.settings, gpu=self.gpu)

    def key(self) -> PlanKey:
        key: PlanKey = self.backend.key(self.onnx_path, (PROFILE,))
        return key

    def engine(self, **plan: Any) -> Any:
        """The engine of a plan with these properties, stored as if built before."""
        self.backend.store.save(self.key(), fake_trt.plan(**plan), 1.0, 1 << 30)
        return self.backend.load(self.onnx_path, (PROFILE,))


@pytest.fixture
def bench(ten: Any, tmp_path: Path, onnx_path: Path) -> Iterator[Bench]:
    made = Bench(ten, tmp_path, onnx_path)
    yield made
    made.backend.close()


def picture(count: int = 1, side: int = 8, seed: int = 0) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, (count, side, side, 3), np.uint8)


def check(engine: Any, image: npt.NDArray[np.uint8]) -> None:
    outputs = engine.infer({"image": image})
    assert np.array_equal(outputs["echo"], image + 1)
    assert np.array_equal(outputs["total"], image.sum(axis=(1, 2, 3)))


# ---- what is inferred


@pytest.mark.parametrize("integrated", [False, True])
@pytest.mark.parametrize("graphs", [False, True])
def test_every_version_gives_the_right_outputs_for_changing_shapes(
    trt: Any, tmp_path: Path, onnx_path: Path, integrated: bool, graphs: bool
) -> None:
    trt.cuda.integrated = integrated
    bench = Bench(trt, tmp_path, onnx_path, graphs=graphs)
    engine = bench.engine()
    for n in range(60):
        check(engine, picture(1 + n % 4, 8 + 8 * (n % 3), seed=n))
    assert (engine.counters.graph_launches > 30) == graphs
    engine.close()
    bench.backend.close()
    assert trt.cuda.stack == []


def test_engine_describes_itself(bench: Bench) -> None:
    engine = bench.engine()
    assert [str(spec) for spec in engine.inputs] == ["image: uint8 (?, ?, ?, 3)"]
    assert [str(spec) for spec in engine.outputs] == ["echo: uint8 (?, ?, ?, 3)", "total: int32 (?)"]
    assert engine.fingerprint.startswith(f"tensorrt-10.3.0:{bench.key().model_sha256[:12]}:fp16:")


def test_outputs_belong_to_the_caller(bench: Bench) -> None:
    engine = bench.engine()
    first = engine.infer({"image": picture(seed=1)})
    kept = first["echo"].copy()
    engine.infer({"image": picture(seed=2)})
    assert np.array_equal(first["echo"], kept)


def test_feed_may_change_after_enqueue(bench: Bench) -> None:
    engine = bench.engine()
    image = picture()
    expected = image + 1
    engine.enqueue({"image": image})
    image[:] = 0
    assert np.array_equal(engine.collect()["echo"], expected)


def test_two_engines_may_be_under_way_and_share_one_scratch_block(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path)
    one, two = bench.engine(), bench.engine()
    for n in range(6):
        first, second = picture(seed=n), picture(seed=100 + n)
        one.enqueue({"image": first})
        two.enqueue({"image": second})
        assert np.array_equal(two.collect()["total"], second.sum(axis=(1, 2, 3)))
        assert np.array_equal(one.collect()["total"], first.sum(axis=(1, 2, 3)))
    scratches = {context.scratch[0] for context in ten.seen["contexts"]}
    assert len(scratches) == 1


def test_engine_that_needs_more_scratch_moves_the_block_for_all(bench: Bench, onnx_path: Path) -> None:
    one = bench.engine(scratch_bytes=1000)
    for n in range(3):
        check(one, picture(seed=n))
    graphs = one.counters.captures
    two = bench.engine(scratch_bytes=1 << 20)
    check(two, picture(seed=9))
    for n in range(3):
        check(one, picture(seed=n))
    assert one.counters.captures == graphs + 1, "the graph that knew the old address was thrown away"


def test_smallest_profile_that_admits_the_shape_is_used(bench: Bench) -> None:
    small, large = ((1, 8, 8, 3), (1, 16, 16, 3)), ((1, 8, 8, 3), (4, 32, 32, 3))
    engine = bench.engine(profiles=(large, small))
    check(engine, picture(1, 16))
    check(engine, picture(2, 16))
    used = [context.active_optimization_profile for context in bench.trt.seen["contexts"] if context.shapes]
    assert [lane.profile for lane in engine._lanes._by_shape.values()] == [1, 0]
    assert sorted(used) == [0, 1]


# ---- what is measured


def test_gpu_times_tell_copies_from_kernels(bench: Bench) -> None:
    engine = bench.engine()
    copies = bench.trt.cuda.copies
    times = engine.gpu_times({"image": picture(2)}, 3)
    # the fake's time is work done: one copy in, one graph of two kernels, two copies out
    assert (times.h2d_ms, times.compute_ms, times.d2h_ms) == ((1.0,) * 3, (2.0,) * 3, (2.0,) * 3)
    assert bench.trt.cuda.copies == copies + 3 * (2 + 3)
    alive = bench.gpu.graphs.alive
    check(engine, picture(2, seed=7))
    assert alive == 1, "the graph of kernels alone is closed again"


def test_gpu_times_without_graphs(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path, graphs=False)
    assert bench.engine().gpu_times({"image": picture()}, 2).compute_ms == (2.0, 2.0)


def test_every_version_tells_its_layers(trt: Any, tmp_path: Path, onnx_path: Path) -> None:
    engine = Bench(trt, tmp_path, onnx_path).engine()
    check(engine, picture(2, 16))
    first, second = engine.layers({"image": picture(2, 16)}, 4)
    assert (first.name, first.ms, first.share) == ("sum", 0.25, 0.25)
    assert (second.name, second.ms, second.share) == ("add", 0.75, 0.75)
    assert (second.kind, second.kernel) == ("PointWise", "add_u8")
    assert second.tensors == "UINT8 2x16x16x3 -> UINT8 2x16x16x3"
    for n in range(3):
        check(engine, picture(2, 16, seed=n))
    assert engine.counters.captures == 1, "the lanes that infer uses carry no profiler"


def test_plan_that_keeps_only_names_still_tells_times(bench: Bench) -> None:
    engine = bench.engine(detailed=False)
    assert [(layer.name, layer.kind, layer.tensors) for layer in engine.layers({"image": picture()}, 1)] == [
        ("sum", "", ""),
        ("add", "", ""),
    ]


def test_contexts_leave_no_marks_for_tracing_tools(bench: Bench) -> None:
    bench.engine()
    assert {context.nvtx_verbosity.name for context in bench.trt.seen["contexts"]} == {"NONE"}


def test_measuring_refuses_a_feed_that_fits_no_profile(bench: Bench) -> None:
    engine = bench.engine()
    for measure in (engine.layers, engine.gpu_times):
        with pytest.raises(FrameError, match="fits no profile"):
            measure({"image": picture(1, 64)}, 1)
    check(engine, picture())


# ---- what is refused (field case ENG-5)


def test_shape_outside_every_profile_names_tensor_shape_and_profiles(bench: Bench) -> None:
    engine = bench.engine()
    check(engine, picture())
    for shape in [(5, 8, 8, 3), (1, 40, 8, 3), (1, 5, 5, 3)]:
        with pytest.raises(FrameError) as refusal:
            engine.infer({"image": np.zeros(shape, np.uint8)})
        assert f"image {shape} fits no profile" in str(refusal.value)
        assert "image (1, 8, 8, 3)..(4, 32, 32, 3)" in str(refusal.value)
    check(engine, picture(seed=3))


@pytest.mark.parametrize(
    "feed",
    [
        {},
        {"img": picture()},
        {"image": picture().astype(np.float32)},
        {"image": picture()[0]},
        {"image": picture()[:0]},
    ],
)
def test_feed_that_is_not_the_engines_is_refused_as_a_frame_error(bench: Bench, feed: Any) -> None:
    with pytest.raises(FrameError):
        bench.engine().infer(feed)


def test_refused_shape_is_an_error_and_never_the_frame_before(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.engine()
    check(engine, picture())
    monkeypatch.setattr(bench.trt.IExecutionContext, "set_input_shape", lambda *_: False)
    with pytest.raises(EngineError, match=r"TensorRT refuses image of shape \(2, 8, 8, 3\)"):
        engine.infer({"image": picture(2)})
    with pytest.raises(EngineError, match="failed before"):
        engine.collect()


def test_execute_that_reports_failure_is_an_error_with_the_loggers_words(bench: Bench) -> None:
    engine = bench.engine()
    check(engine, picture(seed=1))
    bench.trt.refuse_execute = True
    with pytest.raises(EngineError, match=r"did not execute: ERROR: enqueueV3: parameter check failed"):
        engine.infer({"image": picture(2, seed=2)})
    with pytest.raises(EngineError, match="failed before"):
        engine.infer({"image": picture(seed=1)})


def test_output_that_stays_open_is_an_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.engine()
    monkeypatch.setattr(bench.trt.IExecutionContext, "get_tensor_shape", lambda *_: fake_trt.Dims((-1, 3)))
    with pytest.raises(EngineError, match="stay open"):
        engine.infer({"image": picture(3)})


def test_shapes_that_cannot_be_inferred_are_an_engine_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.engine()

    def refuse(context: Any) -> list[str]:
        raise RuntimeError("infer_shapes error code: -1")

    monkeypatch.setattr(bench.trt.IExecutionContext, "infer_shapes", refuse)
    with pytest.raises(EngineError, match="infer_shapes error code: -1"):
        engine.infer({"image": picture(3)})


def test_output_larger_than_its_buffer_is_an_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.engine()
    monkeypatch.setattr(bench.trt.IExecutionContext, "get_tensor_shape", lambda *_: fake_trt.Dims((1 << 30,)))
    with pytest.raises(EngineError, match="larger than their buffers"):
        engine.infer({"image": picture(3)})


def test_dead_gpu_is_an_engine_error_and_stays_one(bench: Bench) -> None:
    engine = bench.engine()
    check(engine, picture())
    bench.trt.cuda.fail_from = 1
    with pytest.raises(EngineError, match="CUDA failed: .*illegal memory access.*start afresh"):
        engine.infer({"image": picture()})
    with pytest.raises(EngineError, match="failed before"):
        engine.infer({"image": picture()})
    engine.close()
    engine.close()


def test_enqueue_and_collect_come_in_pairs(bench: Bench) -> None:
    engine = bench.engine()
    with pytest.raises(EngineError, match="nothing to collect"):
        engine.collect()
    engine.enqueue({"image": picture()})
    with pytest.raises(EngineError, match="under way"):
        engine.enqueue({"image": picture()})
    engine.collect()
    check(engine, picture())


def test_closed_engine_refuses_to_infer(bench: Bench) -> None:
    engine = bench.engine()
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.infer({"image": picture()})


@pytest.mark.parametrize(
    ("plan", "said"), [({"dtype": "FP8"}, "has type FP8"), ({"location": "HOST"}, "must lie in host memory")]
)
def test_tensors_that_cannot_be_fed_are_a_model_error(bench: Bench, plan: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        bench.engine(**plan)


# ---- threads (field case ENG-6)


def test_wrong_thread_is_told_so_and_does_no_harm(bench: Bench) -> None:
    engine = bench.engine()
    errors: list[BaseException] = []

    def elsewhere() -> None:
        for call in (
            lambda: engine.infer({"image": picture()}),
            engine.close,
            lambda: bench.backend.load(bench.onnx_path, (PROFILE,)),
            bench.backend.close,
        ):
            try:
                call()
            except EngineError as exc:
                errors.append(exc)

    thread = threading.Thread(target=elsewhere, name="mqtt")
    thread.start()
    thread.join()
    assert len(errors) == 4
    assert all("thread 'mqtt'" in str(error) for error in errors)
    check(engine, picture())


def test_every_cuda_call_of_twenty_reloads_comes_from_one_thread(bench: Bench) -> None:
    for n in range(20):
        engine = bench.engine()
        check(engine, picture(seed=n))
        engine.close()
    bench.backend.close()
    assert {thread for threads in bench.trt.cuda.threads.values() for thread in threads} == {threading.get_ident()}
    assert bench.trt.cuda.stack == []


def test_backend_closes_the_engines_that_are_left(bench: Bench) -> None:
    engine = bench.engine()
    check(engine, picture())
    bench.backend.close()
    with pytest.raises(EngineError, match="closed"):
        engine.infer({"image": picture()})
    assert bench.trt.cuda.stack == []
    assert bench.gpu.pool.counters()["device"].held_bytes == 0


def test_dead_gpu_can_be_closed_and_leaves_no_context(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.engine()
    check(engine, picture())

    def dead(stream: Any) -> None:
        raise FakeCuda.Error("cuStreamSynchronize failed: an illegal memory access was encountered")

    monkeypatch.setattr("tests.backends.fake_cuda.FakeStream.synchronize", dead)
    bench.backend.close()
    assert bench.trt.cuda.stack == []
    with pytest.raises(EngineError, match="closed"):
        engine.infer({"image": picture()})


# ---- memory and graphs


def test_steady_state_allocates_nothing_over_two_thousand_frames(bench: Bench) -> None:
    engine = bench.engine()
    shapes = [(1 + n % 4, 8 * (1 + n % 4)) for n in range(4)]
    for count, side in shapes * 3:
        engine.infer({"image": picture(count, side)})
    before, contexts = bench.gpu.pool.counters(), engine.counters.contexts
    for n in range(2000):
        count, side = shapes[n % len(shapes)]
        engine.infer({"image": picture(count, side)})
    assert bench.gpu.pool.counters() == before
    assert engine.counters.contexts == contexts


def test_reloads_good_and_bad_bring_memory_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.engine()
    check(engine, picture())
    engine.close()
    first = bench.gpu.pool.counters()
    for n in range(50):
        engine = bench.engine()
        check(engine, picture(seed=n))
        engine.close()
        monkeypatch.setattr(bench.trt, "refuse_context", True)
        with pytest.raises(EngineError, match="made no execution context: ERROR: createExecutionContext"):
            bench.engine()
        monkeypatch.setattr(bench.trt, "refuse_context", False)
    last = bench.gpu.pool.counters()
    assert last["device"].held_bytes == first["device"].held_bytes
    assert last["page_locked"].held_bytes == first["page_locked"].held_bytes
    assert bench.gpu.graphs.alive == 0


def test_integrated_gpu_copies_nothing(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    ten.cuda.integrated = True
    bench = Bench(ten, tmp_path, onnx_path)
    engine = bench.engine()
    check(engine, picture(2))
    assert ten.cuda.copies == 0
    assert ten.cuda.page_locked_flags == FakeCuda.host_alloc_flags.DEVICEMAP
    assert bench.gpu.pool.counters()["device"].active_bytes == bench.gpu.scratch.size_bytes


def test_over_the_budget_start_up_says_which_engine_asks_for_how_much(
    ten: Any, tmp_path: Path, onnx_path: Path
) -> None:
    bench = Bench(ten, tmp_path, onnx_path, gpu=fake_gpu(ten.cuda, budget_bytes=3 << 20))
    with pytest.raises(ConfigError, match=r"scratch asks for 64 MiB .* budget of 3 MiB .*tiny \(fp16 .*\) 0 MiB"):
        bench.engine(scratch_bytes=64 << 20)
    check(bench.engine(), picture())


def test_graph_is_recorded_after_one_plain_run_and_then_launched(bench: Bench) -> None:
    engine = bench.engine()
    for n in range(4):
        check(engine, picture(seed=n))
    assert (engine.counters.plain_launches, engine.counters.captures, engine.counters.graph_launches) == (1, 1, 3)


def test_lanes_are_bounded_and_the_oldest_shape_gives_way(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path, max_lanes=3)
    engine = bench.engine()
    for n in range(40):
        check(engine, picture(1 + n % 4, 8 + 8 * (n % 3), seed=n))
    assert len(engine._lanes) == engine.counters.contexts == 3
    assert bench.gpu.graphs.alive <= 3


def test_plan_without_profile_sharing_gets_one_context_and_stays_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, onnx_path: Path
) -> None:
    trt = fake_trt.install(monkeypatch, "8.6.2")
    engine = Bench(trt, tmp_path, onnx_path).engine(shared=False)
    for n in range(12):
        check(engine, picture(1 + n // 2 % 2, seed=n))
    assert engine.counters.contexts == 1
    assert engine.counters.graph_launches > 0


def test_engine_that_cannot_be_recorded_goes_on_without_graphs_and_says_so(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.gpu.graphs.refuses = True
    engine = bench.engine()
    with caplog.at_level(logging.WARNING):
        for n in range(5):
            check(engine, picture(seed=n))
    assert (engine.counters.capture_failures, engine.counters.plain_launches) == (1, 5)
    assert "CUDA graphs are off" in caplog.text


def test_shapes_are_counted_and_kept_when_the_engine_closes(bench: Bench) -> None:
    engine = bench.engine()
    for count in (1, 2, 2, 4):
        check(engine, picture(count))
    engine.close()
    counted = read_shapes(shapes_path(bench.settings.plans_dir, "tiny"))
    assert counted == {(("image", (n, 8, 8, 3)),): runs for n, runs in ((1, 1), (2, 2), (4, 1))}


def test_warm_up_leaves_a_graph_behind(bench: Bench) -> None:
    engine = bench.engine()
    engine.warm_up({"image": (2, 16, 16, 3)})
    assert engine.counters.captures == 1


def test_gpu_time_of_a_shape_is_a_mean_over_launches(bench: Bench) -> None:
    engine = bench.engine()
    # the fake's clock is works done: copy in, two halves, two copies out
    assert engine.time_gpu_ms({"image": picture()}, runs=10) == 5.0
    check(engine, picture(seed=4))


# ---- plans (field case ENG-1)


def builder(behaviour: str) -> dict[str, Any]:
    return {"builder": fake_trt.fake_child(behaviour)}


def test_first_load_builds_the_plan_and_the_next_one_finds_it(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    seen: list[str] = []
    bench = Bench(ten, tmp_path, onnx_path, **builder("well"))
    bench.backend.report = lambda progress: seen.append(str(progress))
    engine = bench.backend.load(onnx_path, (PROFILE,))
    check(engine, picture(4, 32))
    assert "tiny: no plan was built yet; building it" in bench.backend.notes
    assert any("Building 1/2" in line for line in seen)
    engine.close()
    again = Bench(ten, tmp_path, onnx_path, **builder("killed"))
    check(again.backend.load(onnx_path, (PROFILE,)), picture())
    assert again.backend.notes == []


def test_plan_that_tensorrt_refuses_is_moved_aside_and_built_once(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path, **builder("well"))
    path = bench.backend.store.plan_path(bench.key())
    bench.backend.store.save(bench.key(), b"a plan of another TensorRT", 1.0, 1 << 30)
    check(bench.backend.load(onnx_path, (PROFILE,)), picture())
    assert "refused by TensorRT" in bench.backend.notes[0]
    assert "expecting library version 10.3.0" in bench.backend.notes[0]
    assert path.with_name(path.name + ".bad").read_bytes() == b"a plan of another TensorRT"


def test_none_from_deserialize_twice_is_a_model_error_and_no_loop(
    ten: Any, tmp_path: Path, onnx_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(ten, tmp_path, onnx_path, **builder("well"))
    monkeypatch.setattr(ten.Runtime, "deserialize_cuda_engine", lambda *_: None)
    with pytest.raises(ModelError, match="does not load the plan"):
        bench.backend.load(onnx_path, (PROFILE,))


def test_plan_that_does_not_fit_into_memory_is_kept(bench: Bench) -> None:
    with pytest.raises(EngineError, match="out of memory.*free memory"):
        bench.engine(refused="CUDA out of memory while allocating weights")
    assert bench.backend.store.plan_path(bench.key()).exists()


def test_failed_build_goes_on_with_the_last_good_plan_and_says_so(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    old = Bench(ten, tmp_path, onnx_path, options=BuildOptions("fp32"))
    old.engine().close()
    bench = Bench(ten, tmp_path, onnx_path, **builder("killed"))
    engine = bench.backend.load(onnx_path, (PROFILE,))
    check(engine, picture())
    assert ":fp32:" in engine.fingerprint
    assert "was killed (SIGKILL)" in bench.backend.notes[-1]
    assert "precision: built with fp32, running with fp16" in bench.backend.notes[-1]


def test_failed_build_without_any_plan_is_a_model_error(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path, **builder("no implementation"))
    with pytest.raises(ModelError, match="Could not find any implementation.*There is no older plan"):
        bench.backend.load(onnx_path, (PROFILE,))


def test_person_asking_for_a_build_starts_the_tries_anew(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path, **builder("well"))
    for _ in range(3):
        bench.backend.store.begin_try(bench.key())
    with pytest.raises(ModelError, match="edge-agent build tiny"):
        bench.backend.load(onnx_path, (PROFILE,))
    manifest = bench.backend.build(onnx_path, (PROFILE,))
    assert manifest.key == bench.key()
    check(bench.backend.load(onnx_path, (PROFILE,)), picture())


def test_quantised_model_is_int8_and_a_float_one_never(ten: Any, tmp_path: Path, onnx_path: Path) -> None:
    bench = Bench(ten, tmp_path, onnx_path, options=BuildOptions("int8"))
    assert bench.key().options.precision == "fp16"
    quantised = onnx_path.with_name("model.int8.onnx")
    quantised.write_bytes(onnx_path.read_bytes() + b"QuantizeLinear")
    key = bench.backend.key(quantised)
    assert (key.model, key.options.precision) == ("tiny.int8", "int8")
    assert dataclasses.replace(key, model="x").fingerprint != key.fingerprint


def test_old_tensorrt_is_refused_with_the_versions_supported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trt = fake_trt.install(monkeypatch, "8.5.2")
    with pytest.raises(ConfigError, match=r"TensorRT 8\.5\.2 is not supported; supported are TensorRT 8\.6"):
        trt.backend.TrtBackend(TrtSettings(tmp_path), gpu=fake_gpu(trt.cuda))


def test_discarded_plan_is_built_by_the_next_start_and_what_runs_goes_on(bench: Bench) -> None:
    engine = bench.engine()
    assert isinstance(bench.backend, Planned)
    bench.backend.discard(bench.onnx_path, (PROFILE,))
    check(engine, picture())
    path = bench.backend.store.plan_path(bench.key())
    assert not path.exists()
    assert path.with_name(path.name + ".bad").exists()
    with pytest.raises(PlanUnusable):
        bench.backend.store.load(bench.key())
    bench.backend.discard(bench.onnx_path, (PROFILE,))  # there is none now: nothing to do
    engine.close()
