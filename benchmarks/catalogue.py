"""Catalogue: what a long list of products costs: made ready, and held against a label's lines, beside comparing every
product, with the same answers.

    python benchmarks/catalogue.py [--products 100000] [--lines 30]

Four lists: groceries, parts with numbers, twins that differ in a number, names of like letters. Half of the lines are
names with a character misread, the rest is other print. CPU time.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator

from rapidfuzz import fuzz, process

from edge_agent.stages.catalogue import MIN_SCORE, Catalogue, Product
from edge_agent.stages.label_text import skeletons

KINDS = "Organic Classic Fine Crispy Salted Sweet Dark Light Nordic Alpine Royal Smoked Roasted Zarte Süße".split()
GOODS = "Oat Rye Rice Wheat Almond Cherry Apple Berry Honey Cocoa Coffee Milk Butter Cheese Tomato Käse Nüsse".split()
FORMS = "Biscuits Crisps Bread Bar Drink Sauce Soup Spread Flakes Muesli Yoghurt Pudding Cake Pasta Oil Vinegar".split()
AMOUNTS = ("500 g", "250 g", "1 kg", "330 ml", "1,5 l", "6 x 330 ml", "75 cl", "12 fl oz", "100 pcs", "")
OTHER_PRINT = (
    "Keep refrigerated after opening",
    "Ingredients: wheat flour, sugar, palm oil, cocoa butter, salt",
    "Produced in Germany by Example Foods",
    "Nutrition per 100 g energy",
    "Store in a cool dry place",
)


def lists(count: int, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    def grocery() -> str:
        words = (chance.choice(KINDS), chance.choice(GOODS), chance.choice(GOODS), chance.choice(FORMS))
        return " ".join((*words, chance.choice(AMOUNTS))).strip()

    groceries: dict[str, None] = {}
    while len(groceries) < count:
        groceries[grocery() if len(groceries) < 60_000 else f"{grocery()} {chance.randrange(10_000)}"] = None
    yield "groceries", list(groceries)
    yield (
        "parts",
        [f"Bearing {chance.randrange(1000, 9999)}-{chance.choice(('2RS', 'ZZ'))} {n:06d}" for n in range(count)],
    )
    yield "twins", [f"Widget TD-{n:05d}" for n in range(count)]
    yield "like letters", ["Widget " + "".join(chance.choices("abcdefgh", k=6)) for _ in range(count)]


def label_of(names: list[str], lines: int, chance: random.Random) -> Iterator[str]:
    for n in range(lines):
        name = chance.choice(names)
        at = chance.randrange(len(name))
        misread = name[:at] + chance.choice("oil0 ") + name[at + 1 :]
        yield misread if n % 2 else f"{chance.choice(OTHER_PRINT)} {n}"


def forms_of(texts: list[str]) -> tuple[list[str], list[str]]:
    """The letters of texts, and their words in order."""
    words = [text.split() for text in skeletons(texts, ",;/")]
    return ["".join(each) for each in words], [" ".join(sorted(each)) for each in words]


def best_of_all(line: str, names: tuple[list[str], list[str]]) -> float:
    """The best score by comparing letters and words of every product."""
    return max(
        float(process.cdist(form, listed, scorer=fuzz.ratio, score_cutoff=MIN_SCORE).max())
        for form, listed in zip(forms_of([line]), names, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--lines", type=int, default=30)
    options = parser.parse_args()
    chance = random.Random(3)
    print(f"{options.products} products, a label of {options.lines} lines; CPU time")
    for kind, names in lists(options.products, chance):
        products = [Product(str(n), name) for n, name in enumerate(names)]
        began = time.process_time()
        catalogue = Catalogue(products)
        ready_s = time.process_time() - began
        lines = list(label_of(names, options.lines, chance))
        began = time.process_time()
        matches = [catalogue.match(line) for line in lines]
        label_ms = (time.process_time() - began) * 1e3
        forms = forms_of(names)
        began = time.process_time()
        scores = [best_of_all(line, forms) for line in lines]
        all_ms = (time.process_time() - began) * 1e3
        found = sum(match is not None for match in matches)
        alike = sum(score >= MIN_SCORE for score in scores)
        print(
            f"{kind:12} ready {ready_s:5.2f} s   label {label_ms:4.0f} ms, every product compared {all_ms:4.0f} ms: "
            f"{all_ms / label_ms:3.1f} times   lines named {found}, alike {alike}"
        )


if __name__ == "__main__":
    main()
