"""What was learned from example phrases outlives a start, and never a change of what it depends on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge_agent.stages import kept_prototypes
from edge_agent.stages.kept_prototypes import KeptPrototypes, Learned


class Learning:
    """Learns of two phrases in two classes, their vectors of three numbers, their manners of one."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Learned:
        self.calls += 1
        numbers = np.arange(6, dtype=np.float32) + self.calls
        return Learned(numbers.reshape(2, 3), np.ones((4, 2), np.float32), np.ones((1, 2), np.float32))


def same(one: Learned, two: Learned) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(two).values(), strict=True))


def test_it_is_learned_once_for_the_same_names(tmp_path: Path) -> None:
    path, learn = tmp_path / "plans" / "prototypes.npz", Learning()
    first = KeptPrototypes(path).learned(["model:1", "a", "b"], learn)
    assert same(KeptPrototypes(path).learned(["model:1", "a", "b"], learn), first)
    assert learn.calls == 1
    for names in (["model:2", "a", "b"], ["model:2", "a", "c"], ["model:2", "a\0\0c"], ["model:2", "\ud800"]):
        KeptPrototypes(path).learned(names, learn)
    assert learn.calls == 5


def test_other_code_learns_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, learn = tmp_path / "prototypes.npz", Learning()
    KeptPrototypes(path).learned(["m"], learn)
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.setattr(kept_prototypes, "__file__", str(folder / "kept_prototypes.py"))
    for text in ("a = 1", "a = 2", "a = 2"):
        (folder / "rules.py").write_text(text)
        kept_prototypes.own_code.cache_clear()
        KeptPrototypes(path).learned(["m"], learn)
    assert learn.calls == 3
    kept_prototypes.own_code.cache_clear()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no more", b"x" * 100])
def test_a_damaged_file_is_written_anew(tmp_path: Path, content: bytes) -> None:
    path, learn = tmp_path / "prototypes.npz", Learning()
    path.write_bytes(content)
    KeptPrototypes(path).learned(["m"], learn)
    KeptPrototypes(path).learned(["m"], learn)
    assert learn.calls == 1


@pytest.mark.parametrize(
    ("vectors", "weights", "manners"),
    [((2, 3), (5, 2), (1, 2)), ((2, 3), (4, 2), (1, 3)), ((2, 3), (4,), (1, 2)), ((2, 4), (4, 2), (1, 2))],
)
def test_shapes_that_do_not_fit_together_are_not_used(
    tmp_path: Path, vectors: tuple[int, ...], weights: tuple[int, ...], manners: tuple[int, ...]
) -> None:
    path, learn = tmp_path / "prototypes.npz", Learning()
    KeptPrototypes(path).learned(["m"], lambda: Learned(np.zeros(vectors), np.zeros(weights), np.zeros(manners)))
    assert KeptPrototypes(path).learned(["m"], learn).is_sound()
    assert learn.calls == 1


def test_numbers_that_are_not_finite_are_not_used(tmp_path: Path) -> None:
    path, learn = tmp_path / "prototypes.npz", Learning()
    KeptPrototypes(path).learned(["m"], lambda: Learned(np.full((2, 3), np.nan), np.ones((4, 2)), np.ones((1, 2))))
    KeptPrototypes(path).learned(["m"], learn)
    assert learn.calls == 1


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    learn = Learning()
    kept = KeptPrototypes(tmp_path / "file" / "prototypes.npz")
    assert kept.learned(["m"], learn).is_sound()
    assert kept.learned(["m"], learn).is_sound()
    assert learn.calls == 2
