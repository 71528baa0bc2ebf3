"""Language: of a label, not of a line, and never of codes."""

from __future__ import annotations

import pytest

from edge_agent.stages.language import LabelLanguage

EUROPEAN = LabelLanguage(("en", "de", "fr", "es", "it"))


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (("Keep refrigerated after opening", "Ingredients: wheat flour, sugar, salt"), "en"),
        (("Zutaten: Weizenmehl, Zucker, Salz", "Kühl und trocken lagern"), "de"),
        (("Ingrédients : farine de blé, sucre, sel", "À consommer de préférence avant le"), "fr"),
        (("Ingredientes: harina de trigo, azúcar, sal", "Conservar en lugar fresco y seco"), "es"),
        (("Ingredienti: farina di grano, zucchero, sale", "Conservare in luogo fresco e asciutto"), "it"),
    ],
)
def test_the_language_of_a_label_is_told(texts: tuple[str, ...], language: str) -> None:
    assert EUROPEAN.of(texts) == language


@pytest.mark.parametrize(
    "texts",
    [(), ("4006381333931", "L4711A", "12/08/2027"), ("Oat Milk",), ("",), ("\ud83d\x00",), ("500 g", "EXP 2027-08-31")],
)
def test_codes_and_a_few_words_have_no_language(texts: tuple[str, ...]) -> None:
    assert EUROPEAN.of(texts) is None


def test_scripts_without_spaces_are_words_too() -> None:
    assert LabelLanguage(("en", "zh")).of(["配料：小麦粉、白砂糖、植物油、鸡蛋"]) == "zh"


def test_only_configured_languages_are_told_and_each_object_keeps_its_own() -> None:
    german = ["Zutaten: Weizenmehl, Zucker, Salz", "Kühl und trocken lagern"]
    romance = LabelLanguage(("fr", "es"))
    assert romance.of(german) in ("fr", "es", None)
    assert EUROPEAN.of(german) == "de"
    assert LabelLanguage(("de",)).of(german) == "de"
    assert LabelLanguage(("tlh", "de")).of(german) == "de"
    assert LabelLanguage(("tlh", "qya")).of(german) is None
