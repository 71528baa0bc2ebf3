"""Fetch: from a wheel to files that the stages load; what is damaged is found and mended."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

from edge_agent import files
from edge_agent.errors import ModelError
from edge_agent.models import charset, manifest, wheels
from edge_agent.models.fetch import fetch
from edge_agent.models.manifest import Manifest, faults, state
from edge_agent.models.spec import ModelSpec
from tests.models import small


class Said(list[str]):
    """Keeps what was said."""

    def __call__(self, line: str) -> None:
        self.append(line)

    @property
    def text(self) -> str:
        return "\n".join(self)


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, Path]:
    return small.world(tmp_path)


def state_of(models_dir: Path, name: str) -> str:
    return state(ModelSpec.load(models_dir, name), models_dir / name)


def test_models_are_made_from_a_folder_with_the_wheel(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    said = Said()
    assert state_of(models_dir, "det") == "missing"
    assert fetch(models_dir, ["det", "rec"], said, wheels_from=folder) == ["det", "rec"]
    assert state_of(models_dir, "det") == state_of(models_dir, "rec") == "ready"
    assert "downloading" not in said.text
    names = sorted(path.name for path in (models_dir / "rec").iterdir())
    assert names == [
        "charset.json",
        "charset.latin.json",
        "manifest.json",
        "model.latin.onnx",
        "model.onnx",
        "model.yaml",
    ]


def test_made_recogniser_reads_like_the_original_in_both_variants(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    fetch(models_dir, ["rec"], Said(), wheels_from=folder)
    picture = np.random.default_rng(5).integers(0, 256, (3, 48, 160, 3), np.uint8)
    x = ((picture / 255 - [0.5, 0.4, 0.3]) / [0.5, 0.25, 0.2]).transpose(0, 3, 1, 2).astype(np.float32)
    p = small.run(small.recogniser(), x=x)["p"]
    everything = ["", *small.CHARACTERS, " "]
    for variant, suffix in (("full", ""), ("latin", ".latin")):
        characters = charset.read(models_dir / "rec" / f"charset{suffix}.json")
        kept = [everything.index(character) for character in characters]
        got = small.run(onnx.load(models_dir / "rec" / f"model{suffix}.onnx"), image=picture)
        np.testing.assert_array_equal(got["index"], p[..., kept].argmax(axis=2), err_msg=variant)
        want = p[..., kept].max(axis=2) / p[..., kept].sum(axis=2)
        np.testing.assert_allclose(got["probability"], want, atol=1e-5, err_msg=variant)
    assert charset.read(models_dir / "rec" / "charset.json") == tuple(everything)
    assert charset.read(models_dir / "rec" / "charset.latin.json") == ("", "A", "B", "7", "€", "ß", " ")


def test_ready_model_is_skipped_and_that_is_said(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    fetch(models_dir, ["det"], Said(), wheels_from=folder)
    before = (models_dir / "det" / "model.onnx").stat().st_mtime_ns
    said = Said()
    assert fetch(models_dir, ["det"], said, wheels_from=folder / "..") == []
    assert said == ["det: ready, nothing to do"]
    assert (models_dir / "det" / "model.onnx").stat().st_mtime_ns == before
    assert fetch(models_dir, ["det"], said, wheels_from=folder, force=True) == ["det"]


def test_same_source_makes_the_same_bytes(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    fetch(models_dir, ["rec"], Said(), wheels_from=folder)
    first = {path.name: path.read_bytes() for path in (models_dir / "rec").iterdir()}
    fetch(models_dir, ["rec"], Said(), wheels_from=folder, force=True)
    assert {path.name: path.read_bytes() for path in (models_dir / "rec").iterdir()} == first


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda path: path.unlink(), "model.onnx is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "model.onnx has 100 bytes, expected"),
        (lambda path: path.write_bytes(b"\0" * path.stat().st_size), "model.onnx was changed"),
        (lambda path: path.with_name("manifest.json").write_text("{"), "manifest.json is damaged or missing"),
        (lambda path: path.with_name("manifest.json").write_text('{"v": 1, "files": []}'), "manifest.json is damaged"),
    ],
)
def test_damage_is_named_and_mended(world: tuple[Path, Path], damage: object, fault: str) -> None:
    models_dir, folder = world
    fetch(models_dir, ["det"], Said(), wheels_from=folder)
    spec, directory = ModelSpec.load(models_dir, "det"), models_dir / "det"
    whole = (directory / "model.onnx").read_bytes()
    damage(directory / "model.onnx")  # type: ignore[operator]
    found = faults(spec, directory)
    assert len(found) == 1
    assert found[0].startswith(fault)
    assert state(spec, directory) in ("damaged", "missing")
    assert fetch(models_dir, ["det"], Said(), wheels_from=folder) == ["det"]
    assert faults(spec, directory) == []
    assert (directory / "model.onnx").read_bytes() == whole


def test_every_damaged_file_is_listed(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    fetch(models_dir, ["rec"], Said(), wheels_from=folder)
    directory = models_dir / "rec"
    (directory / "charset.json").unlink()
    (directory / "model.latin.onnx").write_bytes(b"short")
    assert [fault.split()[0] for fault in faults(ModelSpec.load(models_dir, "rec"), directory)] == [
        "charset.json",
        "model.latin.onnx",
    ]


def test_changed_model_yaml_or_builder_makes_the_files_outdated(
    world: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    models_dir, folder = world
    fetch(models_dir, ["det"], Said(), wheels_from=folder)
    path = models_dir / "det" / "model.yaml"
    values = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**values, "licence": "MIT"}))
    assert state_of(models_dir, "det") == "ready"  # the licence is not in the graph
    values["normalisation"]["mean"] = [0.1, 0.1, 0.1]
    path.write_text(yaml.safe_dump(values))
    assert state_of(models_dir, "det") == "outdated"
    assert fetch(models_dir, ["det"], Said(), wheels_from=folder) == ["det"]
    monkeypatch.setattr(manifest, "BUILDER_FILES", ("build.py",))
    assert state_of(models_dir, "det") == "outdated"


def test_extracted_files_do_as_well_as_the_wheel(world: tuple[Path, Path], tmp_path: Path) -> None:
    models_dir, _ = world
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "det.onnx").write_bytes(small.detector().SerializeToString())
    assert fetch(models_dir, ["det"], Said(), wheels_from=loose) == ["det"]


def test_extracted_file_with_other_content_is_not_taken(world: tuple[Path, Path], tmp_path: Path) -> None:
    models_dir, _ = world
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "det.onnx").write_bytes(small.detector(seed=1).SerializeToString())
    with pytest.raises(ModelError, match=r"holds neither the wheel of small-ocr==1\.0 nor its files \(det\.onnx\)"):
        fetch(models_dir, ["det"], Said(), wheels_from=loose)
    assert not (models_dir / "det" / "model.onnx").exists()


def test_wheel_with_another_sha256_is_refused(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    wheel = next(folder.glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes()[:-10])
    with pytest.raises(ModelError, match="sha256 is .*; expected .*: get it again"):
        fetch(models_dir, ["det"], Said(), wheels_from=folder)
    assert state_of(models_dir, "det") == "missing"


@pytest.mark.parametrize("members", [{}, {"small_ocr/models/det.onnx": b"other"}])
def test_member_is_checked_even_where_no_sha256_of_the_wheel_is_given(
    world: tuple[Path, Path], members: dict[str, bytes]
) -> None:
    models_dir, folder = world
    small.write_wheel(folder, "small-ocr", "1.0", members)
    path = models_dir / "det" / "model.yaml"
    values = yaml.safe_load(path.read_text())
    del values["source"]["wheel_sha256"]
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ModelError, match=r"has no small_ocr/models/det\.onnx|sha256 is"):
        fetch(models_dir, ["det"], Said(), wheels_from=folder)


def cut(wheel: bytes) -> bytes:
    return wheel[:500]


def scribbled(wheel: bytes) -> bytes:
    """Its first member's compressed bytes are others."""
    return wheel[:120] + bytes(byte ^ 0xFF for byte in wheel[120:160]) + wheel[160:]


def said_to_be_encrypted(wheel: bytes) -> bytes:
    """The flag of each member, in its own header and in the directory, says so."""
    changed = bytearray(wheel)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = changed.find(mark)
        while at >= 0:
            changed[at + offset] |= 1
            at = changed.find(mark, at + 1)
    return bytes(changed)


@pytest.mark.parametrize("damage", [cut, scribbled, said_to_be_encrypted])
def test_damaged_wheel_is_called_that(world: tuple[Path, Path], damage: Callable[[bytes], bytes]) -> None:
    models_dir, folder = world
    wheel = next(folder.glob("*.whl"))
    wheel.write_bytes(damage(wheel.read_bytes()))
    path = models_dir / "det" / "model.yaml"
    values = yaml.safe_load(path.read_text())
    del values["source"]["wheel_sha256"]
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ModelError, match=r"small_ocr-1\.0-py3-none-any\.whl is damaged"):
        fetch(models_dir, ["det"], Said(), wheels_from=folder)


def test_what_only_bears_the_wheels_name_is_no_wheel(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    (wheel,) = folder.glob("*.whl")
    wheel.unlink()
    wheel.mkdir()
    with pytest.raises(ModelError, match="holds neither the wheel"):
        fetch(models_dir, ["det"], Said(), wheels_from=folder)
    wheel.rmdir()
    wheel.symlink_to("/dev/zero")  # would never end
    with pytest.raises(ModelError, match="holds neither the wheel"):
        fetch(models_dir, ["det"], Said(), wheels_from=folder)


def test_folder_that_is_not_there_is_said(world: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a folder"):
        fetch(world[0], ["det"], Said(), wheels_from=tmp_path / "nowhere")


def test_pip_downloads_with_the_users_own_configuration(
    world: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    models_dir, folder = world
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    said = Said()
    assert fetch(models_dir, ["det", "rec"], said) == ["det", "rec"]
    assert said.text.count("downloading small-ocr==1.0") == 1  # one wheel, two models
    assert state_of(models_dir, "rec") == "ready"


def test_pip_that_fails_is_quoted_and_the_way_without_network_named(
    world: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelError) as failed:
        fetch(world[0], ["det"], Said())
    assert "pip could not download small-ocr==1.0: ERROR: No matching distribution found" in str(failed.value)
    assert "--from DIR" in str(failed.value)


def test_last_line_of_pips_traceback_is_quoted(tmp_path: Path) -> None:
    script = (
        "printf 'ERROR: Exception:\\nTraceback (most recent call last):\\nOSError: No space left on device\\n'; exit 2"
    )
    with pytest.raises(ModelError, match="could not download x==1: OSError: No space left on device"):
        wheels.run_pip(["sh", "-c", script, "sh", "x==1"], tmp_path, Said())


def test_fetch_from_a_folder_needs_no_temporary_one_and_a_download_without_says_so(
    world: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    models_dir, folder = world
    monkeypatch.setattr(wheels.tempfile, "TemporaryDirectory", no_room)
    assert fetch(models_dir, ["det"], Said(), wheels_from=folder) == ["det"]
    with pytest.raises(ModelError, match="no folder to download into: No usable temporary.*set TMPDIR"):
        fetch(models_dir, ["rec"], Said())


def test_long_download_shows_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "PROGRESS_EVERY_S", 0.05)
    said = Said()
    wheels.run_pip(["sh", "-c", 'echo x > "$TMPDIR/part"; sleep 0.3'], tmp_path, said)
    assert "MB so far" in said.text


def test_download_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "PROGRESS_EVERY_S", 0.05)
    monkeypatch.setattr(wheels, "DOWNLOAD_TIMEOUT_S", 0.1)
    with pytest.raises(ModelError, match="was ended; check the network"):
        wheels.run_pip(["sleep", "60"], tmp_path, Said())


def test_password_of_an_index_is_not_repeated(tmp_path: Path) -> None:
    command = [
        "sh",
        "-c",
        "echo 'ERROR: no https://user:S3@cret@mirror.example/simple'; exit 1",
        "sh",
        "small-ocr==1.0",
    ]
    with pytest.raises(ModelError) as failed:
        wheels.run_pip(command, tmp_path, Said())
    assert "cret" not in str(failed.value)
    assert "https://***@mirror.example/simple" in str(failed.value)


def test_wheel_is_found_under_any_spelling_of_its_name(tmp_path: Path) -> None:
    wheel = small.write_wheel(tmp_path, "Some-Name.x", "2.0", {})
    assert wheels.find_wheel(tmp_path, "some_name-X==2.0") == wheel
    assert wheels.find_wheel(tmp_path, "some_name-X==2.1") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_is_said(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    (models_dir / "det").chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(ModelError, match="cannot be written"):
        fetch(models_dir, ["det"], Said(), wheels_from=folder)


def test_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ModelError, match=r"file cannot be written: No space left on device"):
        manifest.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_fetch_that_was_cut_short_is_done_again(world: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    models_dir, folder = world
    fetch(models_dir, ["rec"], Said(), wheels_from=folder)
    (models_dir / "rec" / "manifest.json").unlink()
    assert state_of(models_dir, "rec") == "damaged"
    assert fetch(models_dir, ["rec"], Said(), wheels_from=folder) == ["rec"]


def test_manifest_says_from_what_and_by_what_the_files_were_made(world: tuple[Path, Path]) -> None:
    models_dir, folder = world
    fetch(models_dir, ["det"], Said(), wheels_from=folder)
    made = Manifest.read(models_dir / "det")
    assert made is not None
    assert made.checked
    assert made.sources == {"onnx": small.sha256(small.detector().SerializeToString())}
    assert made.onnx_version == onnx.__version__
    files = json.loads((models_dir / "det" / "manifest.json").read_text())["files"]
    assert set(files) == {"model.onnx", "model.cpu.onnx"}
