"""TokenClassifier: a real graph made here, whose every token has the label that its word says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from edge_agent.backends.base import Engine
from edge_agent.backends.ort import OrtBackend
from edge_agent.errors import ModelError
from edge_agent.stages.token_classifier import Entity, TokenClassifier, _Word, entities_of

BIO = ("O", "B-LOT", "I-LOT", "B-ORDER-NO", "I-ORDER-NO")
WORDS = {"[PAD]": 0, "[CLS]": 0, "[SEP]": 0, "[UNK]": 0, "of": 0, "a": 1, "b": 2, "##2": 0, "po": 3, "77": 4, "c": 1}
SHARPNESS = 8.0


def tokenizer(folder: Path) -> Path:
    """Word pieces, with [CLS] and [SEP], padded to 128 as files found in the wild are."""
    made = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    made.enable_padding(length=128)
    path = folder / "tokenizer.json"
    made.save(str(path))
    return path


def graph(
    *,
    labels: int = len(BIO),
    dtype: int = TensorProto.INT64,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "logits",
    open_end: bool = False,
) -> onnx.ModelProto:
    """Logits (batch, tokens, labels) looked up by token; the other inputs are added in times zero, to be used."""
    table = np.zeros((len(WORDS), labels), np.float32)
    for at, label in enumerate(WORDS.values()):
        table[at, label % labels] = SHARPNESS
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"])]
    last = "looked_up"
    for name in inputs[1:]:
        nodes += [
            helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}_f", "zero"], [f"{name}_0"]),
            helper.make_node("Unsqueeze", [f"{name}_0", "axis"], [f"{name}_u"]),
            helper.make_node("Add", [last, f"{name}_u"], [f"with_{name}"]),
        ]
        last = f"with_{name}"
    nodes.append(helper.make_node("Identity", [last], [output]))
    made = helper.make_graph(
        nodes,
        "tagger",
        [helper.make_tensor_value_info(name, dtype, ["batch", "seq"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", "seq", "n" if open_end else labels])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.zeros((), np.float32), "zero"),
            numpy_helper.from_array(np.array([2], np.int64), "axis"),
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


Loader = Callable[..., Engine]


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    def loaded(model: onnx.ModelProto) -> Engine:
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return OrtBackend(1).load(path)

    return loaded


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize(
    "inputs",
    [
        ("input_ids", "attention_mask"),
        ("input_ids", "attention_mask", "token_type_ids"),
        ("input_ids", "attention_mask", "position_ids"),
    ],
)
def test_inputs_are_bound_by_name_in_the_type_they_have(
    load: Loader, tmp_path: Path, dtype: int, inputs: Sequence[str]
) -> None:
    tagger = TokenClassifier(load(graph(dtype=dtype, inputs=inputs)), tokenizer(tmp_path), BIO)
    ((lot, order),) = tagger.entities(["of a b of po"])
    assert (lot.kind, lot.start, lot.end) == ("LOT", 3, 6)
    assert (order.kind, order.start, order.end) == ("ORDER-NO", 10, 12)
    assert lot.score > 0.99


def test_a_word_has_the_label_of_its_first_token_and_its_own_characters(load: Loader, tmp_path: Path) -> None:
    tagger = TokenClassifier(load(graph()), tokenizer(tmp_path), BIO)
    assert [(e.start, e.end) for e in tagger.entities(["of  a2 b"])[0]] == [(4, 8)]


def test_alone_and_together_texts_say_the_same(load: Loader, tmp_path: Path) -> None:
    tagger = TokenClassifier(load(graph()), tokenizer(tmp_path), BIO)
    texts = ["of a b", "", "po 77 77", "\ud83d \x00 a", "of " * 40 + "a"]
    together = tagger.entities(texts)
    assert together == [tagger.entities([text])[0] for text in texts]
    assert together[1] == ()
    assert together[3][0].start == 4


def test_a_text_longer_than_the_model_is_read_in_pieces(load: Loader, tmp_path: Path) -> None:
    tagger = TokenClassifier(load(graph()), tokenizer(tmp_path), BIO, max_len=8)
    text = "of " * 15 + "a b"
    assert [(e.start, e.end) for e in tagger.entities([text])[0]] == [(45, 48)]


def test_entities_below_the_threshold_are_left_out(load: Loader, tmp_path: Path) -> None:
    assert TokenClassifier(load(graph()), tokenizer(tmp_path), BIO, threshold=1.0).entities(["a"]) == [()]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (graph(output="last_hidden_state"), "gives last_hidden_state; expected logits"),
        (graph(labels=4), "for 5 labels"),
        (graph(labels=4, open_end=True), "for 5 labels"),
        (graph(inputs=("input_ids", "attention_mask", "bbox")), "takes .*bbox"),
    ],
)
def test_a_graph_that_breaks_the_contract_is_refused_when_it_is_loaded(
    load: Loader, tmp_path: Path, made: onnx.ModelProto, message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        TokenClassifier(load(made), tokenizer(tmp_path), BIO)


def spelled(*labels: str) -> list[tuple[str, int, int]]:
    words = [_Word(label, 2 * at, 2 * at + 1, 1.0) for at, label in enumerate(labels)]
    return [(entity.kind, entity.start, entity.end) for entity in entities_of(words)]


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (("B-X", "I-X", "B-X", "O", "I-Y"), [("X", 0, 3), ("X", 4, 5), ("Y", 8, 9)]),
        (("B-X", "I-Y", "I-Y"), [("X", 0, 1), ("Y", 2, 5)]),
        (("S-X", "S-X", "B-X", "I-X", "E-X", "I-X"), [("X", 0, 1), ("X", 2, 3), ("X", 4, 9), ("X", 10, 11)]),
        (("U-X", "B-X", "L-X", "B-X", "L-X"), [("X", 0, 1), ("X", 2, 5), ("X", 6, 9)]),
        (("I-X", "I-X", "O", "I-X"), [("X", 0, 3), ("X", 6, 7)]),
        (("LOT", "LOT", "EXP", "O"), [("LOT", 0, 3), ("EXP", 4, 5)]),
        (("O", "O"), []),
        ((), []),
    ],
    ids=["BIO", "BIO, other kind inside", "BIOES", "BILOU", "IO", "plain", "outside", "nothing"],
)
def test_every_scheme_is_read(labels: tuple[str, ...], wanted: list[tuple[str, int, int]]) -> None:
    assert spelled(*labels) == wanted


def test_an_entity_s_score_is_the_mean_of_its_words() -> None:
    (entity,) = entities_of([_Word("B-X", 0, 1, 0.5), _Word("I-X", 2, 3, 1.0)])
    assert entity == Entity("X", 0, 3, 0.75)


def test_a_tokenizer_of_another_model_is_refused_when_it_is_loaded(load: Loader, tmp_path: Path) -> None:
    path = tokenizer(tmp_path)
    made = Tokenizer.from_file(str(path))
    made.add_tokens(["LOT"])
    made.save(str(path))
    with pytest.raises(ModelError, match="is this the tokenizer it was trained with"):
        TokenClassifier(load(graph()), path, BIO)
