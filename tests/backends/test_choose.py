"""Which backend runs and what is said about it (field case ENG-8); libraries are real files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edge_agent.backends.choose import Choice, Findings, choose_backend, look, open_backend, run_ldconfig
from edge_agent.backends.ort import OrtBackend
from edge_agent.errors import EXIT_CONFIG, ConfigError

WELL = Findings((), "10.3.0")
NOTHING = Findings(("the Python package tensorrt is not installed",))
BROKEN = Findings(("/usr/lib/libnvinfer.so.10 is empty (0 bytes)",), broken=True, container=True)
JETSON = Findings(("the Python package pycuda is not installed",), "10.3.0", jetson=True)


def modules(**given: Any) -> Callable[[str], Any]:
    """An importer that knows these modules; an exception among them is raised."""

    def load(name: str) -> Any:
        value = given.get(name.replace(".", "_"))
        if value is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".", maxsplit=1)[0])
        if isinstance(value, BaseException):
            raise value
        return value

    return load


def library(init: int = 0, devices: int = 1) -> Callable[[str], Any]:
    def count(pointer: Any) -> int:
        pointer._obj.value = devices
        return 0

    return lambda name: SimpleNamespace(cuInit=lambda flags: init, cuDeviceGetCount=count)


def no_library(name: str) -> Any:
    raise OSError(f"{name}: cannot open shared object file: No such file or directory")


GOOD = {
    "tensorrt": SimpleNamespace(__version__="10.3.0"),
    "edge_agent_backends_trt_api": SimpleNamespace(require_supported=lambda: "10.3.0"),
    "pycuda_driver": SimpleNamespace(),
}


def found(tmp_path: Path, library_path: str = "", loads: Any = None, driver: Any = None, **changed: Any) -> Findings:
    return look(
        tmp_path,
        {"LD_LIBRARY_PATH": library_path},
        loads or modules(**{**GOOD, **changed}),
        driver or library(),
        lambda: "",
    )


# ---- deciding


@pytest.mark.parametrize("kind", ["auto", "tensorrt"])
def test_tensorrt_is_taken_where_it_can_run(kind: Any) -> None:
    choice = choose_backend(kind, False, WELL)
    assert (choice.name, choice.fallback) == ("tensorrt", False)
    assert "TensorRT 10.3.0" in choice.reason


@pytest.mark.parametrize("findings", [WELL, NOTHING, BROKEN])
def test_onnxruntime_asked_for_is_what_runs(findings: Findings) -> None:
    assert choose_backend("onnxruntime", False, findings).name == "onnxruntime"


@pytest.mark.parametrize("findings", [NOTHING, BROKEN, JETSON])
def test_tensorrt_asked_for_and_missing_ends_with_the_config_exit_code(findings: Findings) -> None:
    with pytest.raises(ConfigError) as refusal:
        choose_backend("tensorrt", False, findings)
    assert refusal.value.exit_code == EXIT_CONFIG
    assert findings.problems[0] in str(refusal.value)
    assert "allow_cpu_fallback: true" in str(refusal.value)


@pytest.mark.parametrize("findings", [NOTHING, BROKEN, JETSON])
def test_allowed_fallback_runs_on_the_cpu_and_is_marked_as_such(findings: Findings) -> None:
    choice = choose_backend("tensorrt", True, findings)
    assert (choice.name, choice.fallback) == ("onnxruntime", True)
    assert findings.problems[0] in str(choice)


def test_auto_on_a_plain_computer_is_the_cpu_with_a_reason_and_no_fallback() -> None:
    choice = choose_backend("auto", False, NOTHING)
    assert choice == Choice("onnxruntime", f"TensorRT cannot run here ({NOTHING.why_not})", fallback=False)


@pytest.mark.parametrize("findings", [BROKEN, JETSON])
def test_auto_does_not_hide_a_broken_gpu(findings: Findings) -> None:
    with pytest.raises(ConfigError, match="made for TensorRT"):
        choose_backend("auto", False, findings)
    assert choose_backend("auto", True, findings).fallback


def test_container_without_the_nvidia_runtime_gets_the_hint() -> None:
    with pytest.raises(ConfigError, match="--runtime nvidia"):
        choose_backend("tensorrt", False, BROKEN)
    with pytest.raises(ConfigError) as refusal:
        choose_backend("tensorrt", False, JETSON)
    assert "--runtime nvidia" not in str(refusal.value)


# ---- looking


def test_machine_with_everything_has_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path) == Findings((), "10.3.0")


def test_zero_byte_library_on_the_loaders_path_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    (folder / "libnvinfer.so.10").touch()
    (folder / "libnvinfer_plugin.so.10").write_bytes(b"\x7fELF")
    (folder / "libother.so.1").touch()
    import_error = ImportError("libnvinfer.so.10: file too short")
    findings = found(tmp_path, f"/nowhere::{folder}", tensorrt=import_error)
    assert findings.problems[0].startswith(f"{folder}/libnvinfer.so.10 is empty (0 bytes)")
    assert len(findings.problems) == 2
    assert "file too short" in findings.problems[1]
    assert findings.gpu_meant


def test_zero_byte_driver_in_a_standard_folder_or_the_loaders_cache_is_named(tmp_path: Path) -> None:
    standard = tmp_path / "usr/lib/aarch64-linux-gnu/tegra"
    standard.mkdir(parents=True)
    (standard / "libcuda.so.1.1").touch()
    elsewhere = tmp_path / "odd"
    elsewhere.mkdir()
    (elsewhere / "libnvonnxparser.so.8").touch()
    cache = f"1 libs found\n\tlibnvonnxparser.so.8 (libc6,AArch64) => {elsewhere}/libnvonnxparser.so.8\n"
    findings = look(tmp_path, {}, modules(**GOOD), library(), lambda: cache)
    assert [problem.split(" is ")[0] for problem in findings.problems] == [
        f"{standard}/libcuda.so.1.1",
        f"{elsewhere}/libnvonnxparser.so.8",
    ]


@pytest.mark.parametrize(
    ("changed", "said", "broken"),
    [
        ({"tensorrt": None}, "tensorrt is not installed (apt install python3-libnvinfer", False),
        ({"tensorrt": SimpleNamespace()}, "tensorrt is not installed", False),
        ({"tensorrt": ModuleNotFoundError("x", name="tensorrt_libs")}, "it needs tensorrt_libs", True),
        ({"tensorrt": OSError("libnvinfer.so.8: cannot open")}, "does not load: libnvinfer.so.8: cannot open", True),
        ({"pycuda_driver": None}, "pycuda is not installed (pip install", True),
        ({"pycuda_driver": ImportError("libcurand.so.10")}, "pycuda does not load: libcurand.so.10", True),
    ],
)
def test_missing_and_broken_packages_are_told_apart(tmp_path: Path, changed: Any, said: str, broken: bool) -> None:
    findings = found(tmp_path, **changed)
    assert said in findings.why_not
    assert findings.broken == broken


def test_unsupported_version_is_a_problem_in_its_own_words(tmp_path: Path) -> None:
    def refuse() -> str:
        raise ConfigError("TensorRT 8.5.2 is not supported; supported are ...")

    findings = found(tmp_path, edge_agent_backends_trt_api=SimpleNamespace(require_supported=refuse))
    assert findings.problems == ("TensorRT 8.5.2 is not supported; supported are ...",)


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (no_library, "libcuda.so.1 does not load"),
        (library(init=100), "cuInit gives 100"),
        (library(devices=0), "sees no GPU"),
    ],
)
def test_driver_that_does_not_work_is_a_problem(tmp_path: Path, driver: Any, said: str) -> None:
    findings = found(tmp_path, driver=driver)
    assert said in findings.problems[0]


@pytest.mark.parametrize(
    ("mark", "jetson", "container"),
    [("etc/nv_tegra_release", True, False), ("dev/nvmap", True, False), (".dockerenv", False, True)],
)
def test_jetsons_and_containers_are_known_by_their_files(
    tmp_path: Path, mark: str, jetson: bool, container: bool
) -> None:
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).touch()
    findings = found(tmp_path)
    assert (findings.jetson, findings.container) == (jetson, container)


def test_this_machine_can_be_looked_at() -> None:
    findings = look()
    assert isinstance(run_ldconfig(), str)
    if "pycuda" not in sys.modules and findings.tensorrt is None:
        assert findings.problems


# ---- opening


def test_chosen_backend_is_opened() -> None:
    backend = open_backend(Choice("onnxruntime", "asked for"), threads=1)
    assert isinstance(backend, OrtBackend)


def test_tensorrt_without_a_folder_for_plans_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_agent.registry.load", lambda *_: None)
    with pytest.raises(ConfigError, match="where its plans lie"):
        open_backend(Choice("tensorrt", "asked for"))
