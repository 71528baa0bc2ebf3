"""Archive: a collection goes to a sister device whole, and nothing else gets in."""

from __future__ import annotations

import json
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edge_agent.calibrate.archive import export, import_
from edge_agent.calibrate.collect import collect
from edge_agent.calibrate.collection import Collection, load
from edge_agent.calibrate.frames import FolderSource
from edge_agent.errors import CalibrationRefused
from tests.calibrate.made_frames import folder_of

Members = dict[str, bytes]


@pytest.fixture
def kept(tmp_path: Path) -> Collection:
    frames = folder_of(tmp_path / "frames", range(6))
    (frames / "labels.jsonl").write_text('{"file": "img0.jpg", "lines": ["LOT ä"]}', encoding="utf-8")
    return collect(FolderSource(frames), tmp_path / "collection")


@pytest.fixture
def archive(kept: Collection, tmp_path: Path) -> Path:
    export(kept, tmp_path / "collection.zip")
    return tmp_path / "collection.zip"


@pytest.fixture
def sister(tmp_path: Path) -> Path:
    """The folder of another device, with a collection in use."""
    collect(FolderSource(folder_of(tmp_path / "others", range(10, 17))), tmp_path / "sister")
    return tmp_path / "sister"


def members_of(archive: Path) -> Members:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_sister_device_gets_the_very_same_collection(kept: Collection, archive: Path, sister: Path) -> None:
    said: list[float] = []
    imported = import_(archive, sister, report=said.append)
    assert (imported.digest, imported.frames, imported.labels) == (kept.digest, kept.frames, kept.labels)
    assert load(sister) == imported
    for (_, here), (_, there) in zip(kept.images(), imported.images(), strict=True):
        np.testing.assert_array_equal(here, there)
    assert len(list((sister / "frames").iterdir())) == 6, "frames of the collection before are gone"
    assert (said[-1], said) == (1.0, sorted(said))


def test_same_collection_gives_the_same_file(kept: Collection, archive: Path, tmp_path: Path) -> None:
    export(kept, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    assert not list(tmp_path.glob(".*.zip*"))


def test_export_into_a_folder_that_is_not_there_is_refused(kept: Collection, tmp_path: Path) -> None:
    with pytest.raises(CalibrationRefused, match=r"out\.zip cannot be written: No such file"):
        export(kept, tmp_path / "none" / "out.zip")


def test_damaged_collection_is_not_exported(kept: Collection, tmp_path: Path) -> None:
    (kept.directory / "frames" / kept.frames[0].name).unlink()
    with pytest.raises(CalibrationRefused, match="cannot be read"):
        export(kept, tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()


def refused(archive: Path, sister: Path, fault: str, max_pixels: int = 50_000_000) -> None:
    before = load(sister)
    files = sorted(path.name for path in sister.rglob("*"))
    with pytest.raises(CalibrationRefused, match=fault):
        import_(archive, sister, max_pixels)
    assert load(sister) == before, "what was there stays in use"
    assert sorted(path.name for path in sister.rglob("*")) == files


def written(archive: Path, members: Members, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(archive, "w", compression) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return archive


def with_manifest(members: Members, change: Callable[[dict], object]) -> Members:  # type: ignore[type-arg]
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return {**members, "manifest.json": json.dumps(manifest).encode()}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_file_cut_short_is_refused(archive: Path, sister: Path, share: float) -> None:
    content = archive.read_bytes()
    archive.write_bytes(content[: int(len(content) * share)])
    refused(archive, sister, "cut short|damaged")


def test_flipped_byte_anywhere_is_refused(archive: Path, sister: Path) -> None:
    content = archive.read_bytes()
    for at in np.linspace(4, len(content) - 30, 9).astype(int):
        archive.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        before = load(sister)
        try:
            imported = import_(archive, sister)
        except CalibrationRefused:
            assert load(sister) == before
        else:  # a byte that means nothing, such as a time stamp
            assert load(sister) == imported


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all" * 100, b"PK\x05\x06" + bytes(18)])
def test_file_that_is_no_archive_is_refused(archive: Path, sister: Path, content: bytes) -> None:
    archive.write_bytes(content)
    refused(archive, sister, "no archive of a collection|manifest.json' is missing")


def test_missing_file_is_refused(tmp_path: Path, sister: Path) -> None:
    refused(tmp_path / "none.zip", sister, "No such file")


@pytest.mark.parametrize(
    "name", ["../evil.sh", "/etc/passwd", "frames/../../x.jpg", "frames\\x.jpg", "README", "frames/"]
)
def test_member_that_no_collection_has_is_refused(archive: Path, sister: Path, name: str, tmp_path: Path) -> None:
    written(archive, {**members_of(archive), name: b"echo"})
    refused(archive, sister, "is not in its manifest|is a folder")
    assert not (tmp_path / "evil.sh").exists()


def test_manifest_that_names_a_path_is_refused(archive: Path, sister: Path) -> None:
    members = members_of(archive)
    evil = with_manifest(members, lambda manifest: manifest["frames"][0].update(name="../../evil.jpg"))
    written(archive, {**evil, "frames/../../evil.jpg": b"x"})
    refused(archive, sister, r"frames\.0\.name")


def test_link_among_the_members_is_refused(archive: Path, sister: Path) -> None:
    members = members_of(archive)
    name = next(name for name in members if name.startswith("frames/"))
    with zipfile.ZipFile(archive, "w") as out:
        for each, content in members.items():
            info = zipfile.ZipInfo(each)
            info.external_attr = ((stat.S_IFLNK if each == name else stat.S_IFREG) | 0o777) << 16
            out.writestr(info, b"/etc/passwd" if each == name else content)
    refused(archive, sister, "is a folder, link or device")


def test_member_twice_is_refused(archive: Path, sister: Path) -> None:
    members = members_of(archive)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(archive, "a") as out:
        out.writestr("manifest.json", members["manifest.json"])
    refused(archive, sister, "has 'manifest.json' twice")


def test_compressed_members_are_refused_before_they_grow(archive: Path, sister: Path) -> None:
    members = members_of(archive)
    name = next(name for name in members if name.startswith("frames/"))
    written(archive, {**members, name: bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    refused(archive, sister, "is compressed")


def test_size_that_lies_is_refused(archive: Path, sister: Path) -> None:
    content = bytearray(archive.read_bytes())
    at = content.find(b"PK\x01\x02")
    content[at + 20 : at + 28] = (3_000_000_000).to_bytes(4, "little") * 2
    archive.write_bytes(bytes(content))
    refused(archive, sister, "holds 3.* bytes")


def test_list_of_members_beyond_reason_is_refused_unread(archive: Path, sister: Path) -> None:
    content = bytearray(archive.read_bytes())
    at = content.rfind(b"PK\x05\x06")
    content[at + 12 : at + 16] = b"\xff\xff\xff\xff"
    archive.write_bytes(bytes(content))
    refused(archive, sister, "lists more members")


def test_missing_frame_is_refused(archive: Path, sister: Path) -> None:
    members = members_of(archive)
    name = next(name for name in members if name.startswith("frames/"))
    written(archive, {each: content for each, content in members.items() if each != name})
    refused(archive, sister, f"{name}' is missing")


def test_frame_with_another_sha256_is_refused(archive: Path, sister: Path) -> None:
    members = members_of(archive)
    one, other = [name for name in members if name.startswith("frames/")][:2]
    written(archive, {**members, one: members[other]})
    refused(archive, sister, "its sha256 is another")


def test_labels_changed_on_the_way_are_refused(archive: Path, sister: Path) -> None:
    written(archive, with_manifest(members_of(archive), lambda manifest: manifest["labels"].update(x=["y"])))
    import_(archive, sister)  # a label of no frame changes nothing
    written(
        archive, with_manifest(members_of(archive), lambda manifest: manifest["labels"].update({"img1.jpg": ["y"]}))
    )
    refused(archive, sister, "its digest is another")


def test_unknown_version_is_refused(archive: Path, sister: Path) -> None:
    written(archive, with_manifest(members_of(archive), lambda manifest: manifest.update(v=9)))
    refused(archive, sister, "has version 9, this program reads 1")


def test_frame_of_another_size_than_told_is_refused(archive: Path, sister: Path) -> None:
    written(archive, with_manifest(members_of(archive), lambda manifest: manifest["frames"][0].update(width_px=641)))
    refused(archive, sister, "has 640x480 pixels; its manifest says 641x480")


def test_frame_too_large_for_this_device_is_refused(archive: Path, sister: Path) -> None:
    refused(archive, sister, "at most 1000 are read", max_pixels=1000)


def test_crc_that_is_wrong_is_refused(archive: Path, sister: Path) -> None:
    content = bytearray(archive.read_bytes())
    at = content.find(b"PK\x01\x02")
    content[at + 16 : at + 20] = zlib.crc32(b"something else").to_bytes(4, "little")
    archive.write_bytes(bytes(content))
    refused(archive, sister, "damaged")
