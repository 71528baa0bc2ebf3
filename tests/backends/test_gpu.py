"""The GPU's owner thread, its context stack, and turns on the scratch block."""

from __future__ import annotations

import threading

import pytest

from edge_agent.backends.gpu import Gpu
from edge_agent.errors import ConfigError, EngineError
from tests.backends.fake_cuda import Error, FakeCuda, fake_gpu


def test_context_is_pushed_once_and_popped_once() -> None:
    cuda = FakeCuda()
    with fake_gpu(cuda) as gpu:
        assert len(cuda.stack) == 1
        gpu.close()
    assert cuda.stack == []


def test_context_is_popped_when_the_memory_pools_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda()

    def refuse(allocator: int) -> None:
        raise Error("cuMemHostAlloc failed")

    monkeypatch.setattr(cuda, "PageLockedMemoryPool", refuse)
    with pytest.raises(ConfigError, match="cuMemHostAlloc failed"):
        fake_gpu(cuda)
    assert cuda.stack == []


def test_driver_that_does_not_start_is_a_config_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda()

    def refuse() -> None:
        raise Error("cuInit failed: no CUDA-capable device is detected")

    monkeypatch.setattr(cuda, "init", refuse)
    with pytest.raises(ConfigError, match="no CUDA-capable device.*groups video and render.*NVIDIA runtime"):
        fake_gpu(cuda)


@pytest.mark.parametrize(("integrated", "flags"), [(True, 2), (False, 0)])
def test_page_locked_memory_is_mapped_on_integrated_gpus_alone(integrated: bool, flags: int) -> None:
    cuda = FakeCuda(integrated)
    with fake_gpu(cuda) as gpu:
        assert gpu.mapped == integrated
        assert cuda.page_locked_flags == flags


def test_environment_names_the_device() -> None:
    with fake_gpu(FakeCuda()) as gpu:
        environment = gpu.environment("10.3.0")
    assert (environment.tensorrt, environment.compute_capability) == ("10.3.0", "8.7")
    assert (environment.gpu, environment.sm_count) == ("Fake Orin", 8)


def test_another_thread_and_a_closed_gpu_are_refused() -> None:
    gpu = fake_gpu(FakeCuda())
    errors: list[str] = []

    def elsewhere() -> None:
        try:
            gpu.require_owner("detector")
        except EngineError as exc:
            errors.append(str(exc))

    thread = threading.Thread(target=elsewhere, name="paho")
    thread.start()
    thread.join()
    assert "detector was called from thread 'paho'" in errors[0]
    gpu.require_owner("detector")
    gpu.close()
    with pytest.raises(EngineError, match="after the GPU was closed"):
        gpu.require_owner("detector")


def test_cuda_errors_are_named_and_others_pass() -> None:
    with fake_gpu(FakeCuda()) as gpu:
        with pytest.raises(EngineError, match="detector: CUDA failed: boom"), gpu.errors_named("detector"):
            raise Error("boom")
        with pytest.raises(KeyError), gpu.errors_named("detector"):
            raise KeyError("a bug")


def turns(gpu: Gpu, cuda: FakeCuda) -> list[str]:
    order: list[str] = []
    one, two = gpu.stream(), gpu.stream()
    for name, stream in (("a", one), ("b", two), ("c", one), ("d", one)):
        with gpu.scratch.turn(stream):
            stream.put(lambda name=name: order.append(name))
    two.synchronize()
    one.synchronize()
    return order


def test_turns_on_the_scratch_run_in_the_order_they_were_taken_whatever_the_stream() -> None:
    cuda = FakeCuda()
    with fake_gpu(cuda) as gpu:
        gpu.scratch.reserve(100)
        assert turns(gpu, cuda) == ["a", "b", "c", "d"]


def test_scratch_grows_and_never_shrinks() -> None:
    with fake_gpu(FakeCuda()) as gpu:
        gpu.scratch.reserve(100)
        first = (gpu.scratch.address, gpu.scratch.generation)
        gpu.scratch.reserve(50)
        assert (gpu.scratch.address, gpu.scratch.generation) == first
        gpu.scratch.reserve(5000)
        assert gpu.scratch.size_bytes == 5000
        assert gpu.scratch.generation == first[1] + 1
        assert gpu.pool.counters()["device"].active_bytes == 5000
