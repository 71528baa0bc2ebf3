from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from edge_agent.backends.base import Array, Engine, Feed
from edge_agent.backends.ort import OrtBackend
from edge_agent.stages.field_prototypes import PROTOTYPES
from edge_agent.stages.kept_prototypes import KeptPrototypes
from edge_agent.stages.key_phrases import VALUE_FIELDS
from edge_agent.stages.line_shape import may_be_address, shape
from edge_agent.stages.nearest import NearestPrototypes
from edge_agent.stages.text_encoder import TextEncoder
from tests.conftest import ROOT

MODEL = ROOT / "engines" / "minilm-l6-v2"
WORDS = dict.fromkeys(("product_name", "ingredients", "warning", "address", "other"), 0.0)


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    if not (MODEL / "model.onnx").exists():
        pytest.skip("the encoder is not fetched: edge-agent models fetch")
    return TextEncoder(OrtBackend().load(MODEL / "model.onnx"), MODEL / "tokenizer.json")


@pytest.fixture(scope="module")
def nearest(encoder: TextEncoder) -> NearestPrototypes:
    return NearestPrototypes(encoder, PROTOTYPES)


def test_text_is_named_after_what_it_is_most_like(nearest: NearestPrototypes) -> None:
    texts = [
        "Blueberry Muffins",
        "oat flakes, honey, salt",
        "Do not drink, poisonous",
        "Tall Trees Ltd, York YO1 7HH",
        "Open",
    ]
    answers = nearest.nearest(texts, [WORDS] * len(texts))
    assert [a.name for a in answers] == ["product_name", "ingredients", "warning", "address", "other"]
    assert all(0.0 < a.share <= 1.0 for a in answers)


def test_only_candidates_are_named(nearest: NearestPrototypes) -> None:
    (answer,) = nearest.nearest(["Blueberry Muffins"], [{"warning": 0.0, "other": 0.0}])
    assert answer.name in {"warning", "other"}
    (answer,) = nearest.nearest(["Blueberry Muffins"], [{"warning": 0.0}])
    assert (answer.name, answer.share) == ("warning", 1.0)


def test_answers_do_not_depend_on_the_company(nearest: NearestPrototypes, encoder: TextEncoder) -> None:
    texts = ["Almond Croissant", "Wash hands after use", "Blue"]
    together = nearest.nearest(texts, [WORDS] * 3)
    fresh = NearestPrototypes(encoder, PROTOTYPES)
    for text, answer in zip(texts, together, strict=True):
        (alone,) = fresh.nearest([text], [WORDS])
        assert alone.name == answer.name
        assert alone.share == pytest.approx(answer.share, abs=1e-4)


class Turned:
    """The encoder's engine, and from a moment on one whose vectors have their numbers in another order."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.inputs, self.outputs = engine.inputs, engine.outputs
        self.fingerprint = engine.fingerprint
        self.turned = False

    def infer(self, feed: Feed) -> dict[str, Array]:
        outputs = self.engine.infer(feed)
        return {name: array[:, ::-1] for name, array in outputs.items()} if self.turned else outputs


def test_texts_are_compared_with_prototypes_of_the_same_engine() -> None:
    if not (MODEL / "model.onnx").exists():
        pytest.skip("the encoder is not fetched: edge-agent models fetch")
    engine = Turned(OrtBackend().load(MODEL / "model.onnx"))
    few = {name: phrases[:20] for name, phrases in PROTOTYPES.items()}  # all are embedded twice
    nearest = NearestPrototypes(TextEncoder(cast(Engine, engine), MODEL / "tokenizer.json"), few)
    (before,) = nearest.nearest(["Blueberry Muffins"], [WORDS])
    engine.turned, engine.fingerprint = True, "turned"
    (after,) = nearest.nearest(["Blueberry Muffins"], [WORDS])
    assert after.name == before.name
    assert after.similarity == pytest.approx(before.similarity, abs=1e-4)


def test_start_after_the_first_knows_the_same_and_learns_nothing(encoder: TextEncoder, tmp_path: Path) -> None:
    few = {name: phrases[:10] for name, phrases in PROTOTYPES.items()}
    texts = ["Blueberry Muffins", "Do not drink, poisonous", "Bluebery Mufins"]
    answers, learned_from = [], []

    def gist(text: str) -> str:
        learned_from.append(text)
        return text

    for settings in ("", "", "other"):
        learned_from.append("start")
        nearest = NearestPrototypes(encoder, few, gist, kept=KeptPrototypes(tmp_path / "p.npz"), settings=settings)
        answers.append((nearest.nearest(texts, [WORDS] * 3), nearest.without_encoder(texts, [WORDS] * 3, texts)))
    assert answers[0] == answers[1] == answers[2]
    starts = [at for at, text in enumerate(learned_from) if text == "start"]
    assert starts == [0, starts[1], starts[1] + 1], "the second start learned nothing"
    assert len(learned_from) > starts[2] + 1, "other settings, another learning"


def test_script_that_the_vocabulary_lacks_is_not_understood(nearest: NearestPrototypes) -> None:
    assert nearest.understands("Crunchy Oat Granola")
    assert not nearest.understands("原味苏打饼干")
    assert not nearest.understands("")


def test_no_texts_no_answers(nearest: NearestPrototypes) -> None:
    assert nearest.nearest([], []) == []


def test_prototypes_left_out_are_mostly_named_right(encoder: TextEncoder) -> None:
    """Every fifth prototype of the wordy fields is asked about without having been seen."""
    held = {name: phrases[::5] for name, phrases in PROTOTYPES.items() if name in WORDS}
    kept = {name: tuple(p for p in phrases if p not in held.get(name, ())) for name, phrases in PROTOTYPES.items()}
    nearest = NearestPrototypes(encoder, kept)
    asked = [(name, p) for name, phrases in held.items() for p in phrases if nearest.understands(p)]
    answers = nearest.nearest([p for _, p in asked], [WORDS] * len(asked))
    right = np.mean([a.name == name for a, (name, _) in zip(answers, asked, strict=True)])
    assert right >= 0.75, f"{right:.2f} of {len(asked)}"


def test_every_value_field_and_every_field_of_words_has_prototypes() -> None:
    assert set(PROTOTYPES) == VALUE_FIELDS | set(WORDS)
    assert all(len(phrases) == len(set(phrases)) >= 5 for phrases in PROTOTYPES.values())


def test_shape_stays_between_0_and_1_for_any_text() -> None:
    for text in ("", " ", "a" * 1000, ", , , ,", "12345", "Acme Ltd., 12 Mill Lane, Leeds LS1 4DY!", "\ud83d:%"):
        numbers = shape(text)
        assert numbers.shape == (12,)
        assert ((numbers >= 0) & (numbers <= 1)).all()


@pytest.mark.parametrize("text", ["Muster GmbH", "12 Mill Lane", "Hauptstraße 10", "PO Box 123", "a, b"])
def test_what_may_be_an_address(text: str) -> None:
    assert may_be_address(text)


@pytest.mark.parametrize("text", ["Unitary ID 4471-22", "Blueberry Muffins", "", "Trace no. TR-5521"])
def test_what_cannot_be_an_address(text: str) -> None:
    assert not may_be_address(text)
