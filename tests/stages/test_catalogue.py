"""Catalogue: products of a list, and the two rules that no score overrules."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rapidfuzz import fuzz

from edge_agent.errors import ConfigError
from edge_agent.stages.catalogue import Catalogue, Match, Product, read_products
from edge_agent.stages.label_text import skeleton
from edge_agent.stages.product_numbers import contradict, numbers_of

NAMES = (
    "Temperature Display TD-500",
    "Temperature Display TD-700",
    "Organic Oat Biscuits 500 g",
    "Organic Oat Biscuits 250 g",
    "Ibuprofen 200 mg Tablets",
    "Ibuprofen 400 mg Tablets",
    "Dark Chocolate",
    "红烧牛肉面",
)
CATALOGUE = Catalogue(Product(name, name) for name in NAMES)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Temperature DisplayTD-700", "Temperature Display TD-700"),
        ("TEMPERATURE DISPLAY TD-500", "Temperature Display TD-500"),
        ("0rganic 0at Biscuits 500g", "Organic Oat Biscuits 500 g"),
        ("lbuprofen 400 mg Tablels", "Ibuprofen 400 mg Tablets"),
        ("Tablets Ibuprofen 200 mg", "Ibuprofen 200 mg Tablets"),
        ("Dank Chocolale", "Dark Chocolate"),
        ("红烧牛肉面", "红烧牛肉面"),
    ],
)
def test_a_bent_name_is_known(text: str, name: str) -> None:
    match = CATALOGUE.match(text)
    assert match is not None
    assert (match.product.name, match.others) == (name, ())


@pytest.mark.parametrize(
    "text",
    [
        "Temperature Display TD-600",
        "Organic Oat Biscuits 750 g",
        "Ibuprofen 600 mg Tablets",
        "Organic Oat Biscuits 500 ml 125 g",
    ],
)
def test_numbers_and_units_that_contradict_are_never_accepted(text: str) -> None:
    assert CATALOGUE.match(text) is None


@pytest.mark.parametrize(
    ("text", "twins"),
    [
        ("Temperature Display TD-T00", {"Temperature Display TD-700", "Temperature Display TD-500"}),
        ("Ibuprofen 4OO mg Tablets", {"Ibuprofen 400 mg Tablets", "Ibuprofen 200 mg Tablets"}),
        ("Organic Oat Biscuits", {"Organic Oat Biscuits 500 g", "Organic Oat Biscuits 250 g"}),
    ],
)
def test_twins_that_the_text_does_not_tell_apart_are_ambiguous(text: str, twins: set[str]) -> None:
    match = CATALOGUE.match(text)
    assert match is not None
    assert {match.product.name, *(product.name for product in match.others)} == twins


@pytest.mark.parametrize("text", ["", " ", "Milk", "LOT A123", "Salted Peanuts", "Best before 08/2027", "🙂"])
def test_what_is_not_in_the_list_matches_nothing(text: str) -> None:
    assert CATALOGUE.match(text) is None


def test_an_empty_catalogue_matches_nothing() -> None:
    assert Catalogue(()).match("Dark Chocolate") is None


def test_a_file_has_names_and_ids(tmp_path: Path) -> None:
    path = tmp_path / "products.txt"
    path.write_text("\ufeff# ours\n4711\tDark  Chocolate\n\nMilk Chocolate\n", encoding="utf-8")
    assert read_products(["Nougat"], path) == [
        Product("Nougat", "Nougat"),
        Product("4711", "Dark Chocolate"),
        Product("Milk Chocolate", "Milk Chocolate"),
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_a_wrong_setting(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "products.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"catalogue\.file .*products\.txt cannot be read"):
        read_products([], path)


def test_amount_in_another_unit_is_the_same_product_only_where_it_is_the_same_amount() -> None:
    biscuits = Catalogue([Product("1", "Oat Biscuits 500 g")])
    assert biscuits.match("OAT BISCUITS 0,5 kg") is not None
    assert biscuits.match("OAT BISCUITS 500 kg") is None
    assert Catalogue([Product("2", "Fruit Syrup 2 x 75 cl")]).match("FRUIT SYRUP 2 x 750 ml") is not None
    assert Catalogue([Product("2", "Fruit Syrup 2 x 75 cl")]).match("FRUIT SYRUP 2 x 75 ml") is None


def test_a_mass_is_no_volume_but_where_both_give_both_or_one_gives_neither() -> None:
    milk = Catalogue([Product("1", "Oat Milk 500 ml")])
    assert milk.match("OAT MILK 500 g") is None
    assert milk.match("OAT MILK 0.5 kg") is None
    assert milk.match("OAT MILK 500 ml (515 g)") is not None
    assert not contradict(numbers_of("OAT MILK 17 fl oz"), numbers_of("Oat Milk 500 ml"))
    assert Catalogue([Product("1", "Oat Milk 515 g 500 ml")]).match("OAT MILK 515 g") is not None


def test_products_of_one_name_are_told_apart_by_nothing() -> None:
    twins = Catalogue(
        [Product("1", "Oat Biscuits 500 g"), Product("2", "Oat Biscuits 500 g"), Product("3", "Rye Crisps")]
    )
    match = twins.match("Oat Biscuits 500 g")
    assert match is not None and {match.product.id, *(other.id for other in match.others)} == {"1", "2"}
    by_case = Catalogue([Product("1", "Oat Biscuits"), Product("2", "OAT BISCUITS")]).match("Oat Biscuits")
    assert by_case is not None and by_case.others
    same = Catalogue([Product("1", "Oat Biscuits"), Product("1", "Oat Biscuits")]).match("Oat Biscuits")
    assert same is not None and not same.others


def test_file_that_is_no_list_of_names_is_refused_and_an_entry_without_a_name_is_none(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    for content, said in ((b"x" * 300, "a name of 300 characters"), ("Oat".encode("utf-16"), "expected text in UTF-8")):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=said):
            read_products((), path)
    with pytest.raises(ConfigError, match="no regular file"):
        read_products((), Path("/dev/zero"))
    path.write_bytes(b"\xef\xbb\xbf1\t\n\tRye Crisps\n\t\t\n7\tOat Biscuits\n")
    assert read_products((), path) == [Product("Rye Crisps", "Rye Crisps"), Product("7", "Oat Biscuits")]


def test_amounts_in_units_of_two_words_are_amounts() -> None:
    cola = Catalogue([Product("1", "Cola 12 fl oz"), Product("2", "Cola 20 fl oz"), Product("3", "Cola 6 x 12 fl oz")])
    for text, wanted in (("COLA 12 fl oz", "1"), ("Cola 20 fI oz", "2"), ("Cola 6 x 12 fl oz", "3")):
        match = cola.match(text)
        assert match is not None and (match.product.id, match.others) == (wanted, ())
    assert cola.match("Cola 16 fl oz") is None


# what a match is worth, told plainly: every product is compared


def plain_match(products: Sequence[Product], text: str) -> Match | None:
    def words(each: str) -> str:
        return " ".join(skeleton(word).chars for word in re.split(r"[\s,;/]+", each))

    bones, seen = skeleton(text).chars, numbers_of(text)
    scored = []
    for at, product in enumerate(products):
        name = product.name
        score = max(fuzz.ratio(bones, skeleton(name).chars), fuzz.token_sort_ratio(words(text), words(name)))
        if score >= 74 and not contradict(seen, numbers_of(name)):
            scored.append((-score, at))
    scored.sort()
    if not bones or not scored or scored[0][0] > -80:
        return None
    best, at = scored[0]
    others = [other for score, other in scored[1:] if score - best < 6]
    if bones == skeleton(products[at].name).chars and numbers_of(products[at].name).all <= seen.all:
        others = [other for _, other in scored[1:] if skeleton(products[other].name).chars == bones]
    return Match(products[at], -best / 100, tuple(products[other] for other in others[:5]))


WORDS = "Oat Rye Rice Bread Biscuit Biscuits Crisps Bar Größe Crème brûlée TD-500 TD-700 TD-5OO 3 12 ½ l 500 g".split()
WORDS += "0,5 kg 250 ml 12 fl oz 6x330 ml 1.000 g 红烧 牛肉面 / , ; | - @ Forte A B Ltd. ﬁg ① ٣ 🙂".split()


def made_up(chance: random.Random, at_most: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, at_most)))


def bent(chance: random.Random, text: str) -> str:
    """Some of its characters lost, doubled, swapped for look-alikes or in another order."""
    pieces = [chance.choice([char] * 12 + ["", char * 2, "O", "0", " ", "l"]) for char in text]
    if chance.random() < 0.3:
        pieces = list(" ".join(chance.sample("".join(pieces).split(), len("".join(pieces).split()))))
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(12))
def test_a_match_is_the_same_as_if_every_product_were_compared(seed: int) -> None:
    chance = random.Random(seed)
    products = list(dict.fromkeys(Product(str(n % 90), made_up(chance, 7)) for n in range(120)))
    catalogue = Catalogue(products)
    texts = [bent(chance, chance.choice(products).name) for _ in range(60)] + [made_up(chance, 9) for _ in range(20)]
    found = 0
    for text in ["", " ", "\ud83d", *texts]:
        wanted, match = plain_match(products, text), catalogue.match(text)
        if wanted is None or match is None:
            assert match == wanted, text
            continue
        assert (match.product, match.others) == (wanted.product, wanted.others), text
        assert match.score == pytest.approx(wanted.score, abs=1e-6)
        found += 1
    assert found > 20
