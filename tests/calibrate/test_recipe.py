"""Recipes: strict, and refused with file, key and fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.calibrate.recipe import Gates, Recipe, load_recipe, parse_recipe
from edge_agent.errors import ConfigError


def written(directory: Path, model: str, text: str) -> Path:
    (directory / model).mkdir(parents=True)
    (directory / model / "recipe.yaml").write_text(text, encoding="utf-8")
    return directory


def test_model_without_recipe_has_the_defaults(tmp_path: Path) -> None:
    assert load_recipe("some-det", [tmp_path]) == Recipe()


def test_first_folder_with_a_recipe_wins(tmp_path: Path) -> None:
    own = written(tmp_path / "own", "some-det", "method: entropy\n")
    shipped = written(tmp_path / "shipped", "some-det", "method: minmax\n")
    assert load_recipe("some-det", [own, shipped]).method == "entropy"
    assert load_recipe("some-det", [tmp_path, shipped]).method == "minmax"


def test_gates_keep_their_defaults_beside_the_one_that_is_set() -> None:
    recipe = parse_recipe({"gates": {"min_speedup": 1.2}}, "recipe.yaml")
    assert recipe.gates == Gates(min_speedup=1.2)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("method: best\n", "method"),
        ("gates: {max_cer_increase: 2}\n", "gates.max_cer_increase"),
        ("gates: {min_speed: 1}\n", "gates.min_speed"),
        ("percentile: 100\n", "percentile"),
        ("float_groups: stem\n", "float_groups"),
        ("method: minmax\nmethod: entropy\n", "method"),
    ],
)
def test_wrong_recipe_is_refused_with_file_and_key(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=rf"recipe\.yaml.*{fault}"):
        load_recipe("some-det", [written(tmp_path, "some-det", text)])
