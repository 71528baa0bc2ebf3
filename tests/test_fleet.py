"""k8s/: the manifest of a K3s fleet against Kubernetes' own schemas, and against what images and agent really offer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from edge_agent.cameras.csi import ARGUS_SOCKET
from edge_agent.config import cautions, load
from edge_agent.installation import CACHE_DIR, CONFIG, STATE_DIR
from edge_agent.secrets import PRIVATE_FOLDERS
from tests.conftest import ROOT
from tests.test_images import last_stage, only

MANIFEST = ROOT / "k8s" / "edge-agent.yaml"
DOCKERFILE = ROOT / "docker/l4t/Dockerfile"


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    found = list(yaml.safe_load_all(MANIFEST.read_text("utf-8")))
    return {document["kind"]: document for document in found}


@pytest.fixture(scope="module")
def pod(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return dict(documents["DaemonSet"]["spec"]["template"]["spec"])


@pytest.fixture(scope="module")
def agent(pod: dict[str, Any]) -> dict[str, Any]:
    (agent,) = pod["containers"]
    return dict(agent)


def every_container(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from pod["initContainers"]
    yield from pod["containers"]


@pytest.mark.parametrize("version", ["1.28", "1.31", "1.34"])
def test_kubernetes_knows_every_key(documents: dict[str, dict[str, Any]], version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate, from pip")
    for document in documents.values():
        validator.validate(document, version, strict=True)
    wrong = {**documents["DaemonSet"], "spec": {**documents["DaemonSet"]["spec"], "replicas": 2}}
    with pytest.raises(validator.ValidationError):
        validator.validate(wrong, version, strict=True)


def test_settings_are_taken_by_the_agent(documents: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(documents["ConfigMap"]["data"]["config.yaml"], "utf-8")
    config = load(tmp_path / "config.yaml", {"EDGE_AGENT_DEVICE_ID": "jetson-07.plant"})
    assert config.device() == "jetson-07.plant", "a node's name is a device's"
    assert cautions(config, tmp_path / "config.yaml") == []


def test_one_selector_finds_the_pods_and_nothing_leads_astray(documents: dict[str, dict[str, Any]]) -> None:
    spec = documents["DaemonSet"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    names = {documents[kind]["metadata"].get("namespace") for kind in ("ConfigMap", "DaemonSet")}
    assert names == {documents["Namespace"]["metadata"]["name"]}
    volumes = {volume["name"]: volume for volume in spec["template"]["spec"]["volumes"]}
    assert volumes["config"]["configMap"]["name"] == documents["ConfigMap"]["metadata"]["name"]


def test_nothing_is_privileged_and_only_the_owner_of_the_state_is_changed_by_root(pod: dict[str, Any]) -> None:
    uid, gid = map(int, only(DOCKERFILE, "USER").split(":"))
    security = pod["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"], security["runAsGroup"]) == (True, uid, gid)
    assert security["fsGroup"] == gid, "secrets are readable for it"
    assert pod["automountServiceAccountToken"] is False
    for container in every_container(pod):
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["readOnlyRootFilesystem"] is True
        assert own["capabilities"]["drop"] == ["ALL"]
        assert "privileged" not in own
    (owner,) = [
        container for container in every_container(pod) if "add" in container["securityContext"]["capabilities"]
    ]
    assert owner["command"][:5] == ["install", "-d", "-o", str(uid), "-g"]
    assert set(owner["command"][-2:]) == {mount["mountPath"] for mount in owner["volumeMounts"]}


def test_service_links_are_off_because_their_variables_look_like_settings(pod: dict[str, Any]) -> None:
    assert pod["enableServiceLinks"] is False


def test_gpu_cameras_and_sensors_are_reached(pod: dict[str, Any], agent: dict[str, Any]) -> None:
    assert pod["runtimeClassName"] == "nvidia"
    assert {variable["name"]: variable.get("value") for variable in agent["env"]}["NVIDIA_VISIBLE_DEVICES"] == "all"
    sources = {volume["name"]: volume.get("hostPath", {}) for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in agent["volumeMounts"]}
    assert sources[mounts[str(ARGUS_SOCKET)]["name"]] == {"path": str(ARGUS_SOCKET), "type": "Socket"}
    for path in ("/sys", "/var/lib/nvpmodel/status", "/etc/nvpmodel.conf", "/etc/nv_tegra_release", "/etc/machine-id"):
        assert mounts[path]["readOnly"] is True
        assert sources[mounts[path]["name"]]["path"] == path


def test_state_outlives_the_pod_and_everything_that_is_written_has_a_place(
    pod: dict[str, Any], agent: dict[str, Any]
) -> None:
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    written = {mount["mountPath"]: mount["name"] for mount in agent["volumeMounts"] if not mount.get("readOnly")}
    for path in (f"/{STATE_DIR}", f"/{CACHE_DIR}"):
        assert volumes[written[path]]["hostPath"] == {"path": path, "type": "DirectoryOrCreate"}
    image = " ".join(each.text for each in last_stage(DOCKERFILE) if each.word == "ENV")
    (heartbeat,) = [word.partition("=")[2] for word in image.split() if word.startswith("HEARTBEAT_FILE=")]
    for path in (str(Path(heartbeat).parent), "/tmp"):
        assert "emptyDir" in volumes[written[path]]


def test_secrets_come_as_files_from_where_others_cannot_read(pod: dict[str, Any], agent: dict[str, Any]) -> None:
    (mount,) = [mount for mount in agent["volumeMounts"] if mount["name"] == "secrets"]
    assert any(Path(mount["mountPath"]).is_relative_to(folder) for folder in PRIVATE_FOLDERS)
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "secrets"]
    assert volume["secret"]["defaultMode"] == 0o440
    assert volume["secret"]["optional"] is True
    assert [variable for variable in agent["env"] if "secretKeyRef" in variable.get("valueFrom", {})] == []
    (config,) = [mount for mount in agent["volumeMounts"] if mount["name"] == "config"]
    assert config["mountPath"] == str(Path(f"/{CONFIG}").parent)


def test_probes_ask_what_the_image_has(agent: dict[str, Any]) -> None:
    (probe,) = [each.text.split()[1] for each in last_stage(DOCKERFILE) if each.text.startswith("docker/probe.sh")]
    asked = {name: agent[f"{name}Probe"]["exec"]["command"] for name in ("startup", "readiness", "liveness")}
    name = Path(probe).name
    assert asked == {"startup": [name, "alive"], "readiness": [name, "ready"], "liveness": [name, "alive"]}
    startup = agent["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 600, (
        "as long as the image's own health check waits"
    )


def test_stop_has_the_time_that_the_service_manager_gives(pod: dict[str, Any]) -> None:
    unit = (ROOT / "systemd/edge-agent.service").read_text("utf-8")
    assert f"TimeoutStopSec={pod['terminationGracePeriodSeconds']}\n" in unit


def test_metrics_are_where_the_scraper_is_told(
    documents: dict[str, dict[str, Any]], agent: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(documents["ConfigMap"]["data"]["config.yaml"], "utf-8")
    port = load(tmp_path / "config.yaml").metrics.port
    assert [declared["containerPort"] for declared in agent["ports"]] == [port]
    annotations = documents["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(port)
