"""What TensorRT's profiler and inspector say, in the forms that its versions give it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.backends import fake_trt


@pytest.fixture
def ten(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, "10.3.0")


def layers(trt: Any, text: str, names: tuple[str, ...]) -> list[Any]:
    """The layers of an engine whose inspector says `text` and whose profiler reports these names, 1 ms each."""
    context = SimpleNamespace(profiler=None)
    calls = []

    def run() -> None:
        calls.append(context.profiler)
        for name in names if context.profiler is not None else ():
            context.profiler.report_layer_time(name, 1.0)

    inspector = SimpleNamespace(get_engine_information=lambda form: text)
    engine = SimpleNamespace(create_engine_inspector=lambda: inspector)
    found: list[Any] = trt.layers.layer_times(engine, context, run, 2)
    assert [call is None for call in calls] == [True, False, False], "the first run is not counted"
    assert inspector.execution_context is context
    return found


def described(name: str) -> dict[str, Any]:
    fp16 = {"Name": "x", "Location": "Device", "Dimensions": [1, 64, 8, 8], "Format/Datatype": "Half NHWC8"}
    return {
        "Name": name,
        "LayerType": "CaskConvolution",
        "Inputs": [fp16],
        "Outputs": [fp16],
        "TacticName": "sm80_xmma_fprop",
    }


def test_time_and_share_are_of_one_run(ten: Any) -> None:
    first, second = layers(ten, json.dumps({"Layers": [described("conv")], "Bindings": []}), ("conv", "copy"))
    assert (first.ms, first.share, first.kind, first.kernel) == (1.0, 0.5, "CaskConvolution", "sm80_xmma_fprop")
    assert first.tensors == "Half NHWC8 1x64x8x8 -> Half NHWC8 1x64x8x8"
    assert (second.name, second.kind, second.tensors, second.kernel) == ("copy", "", "", "")


@pytest.mark.parametrize("inspected", ["conv", "conv [profile 1]"])
def test_layer_of_a_later_profile_is_found_with_and_without_its_suffix(ten: Any, inspected: str) -> None:
    (layer,) = layers(ten, json.dumps({"Layers": [described(inspected)]}), ("conv [profile 1]",))
    assert (layer.name, layer.kind) == ("conv [profile 1]", "CaskConvolution")


@pytest.mark.parametrize("text", ['{"Layers": ["conv"]}', '{"Layers": [{"Name": "a\\q"}]}', "[]", "", "{}"])
def test_times_remain_where_the_inspector_tells_nothing_usable(ten: Any, text: str) -> None:
    (layer,) = layers(ten, text, ("conv",))
    assert (layer.name, layer.ms, layer.kind) == ("conv", 1.0, "")
