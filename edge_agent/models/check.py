"""Check: does what was made say the same as the original? Both run in ONNX Runtime on made pictures and texts.

Pictures are made from a fixed seed and from a small dot-matrix font below, so that no picture file and no OpenCV is
needed and every machine checks the same thing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import yaml
from onnx import numpy_helper

from edge_agent.errors import ModelError, in_one_line
from edge_agent.models import surgery
from edge_agent.models.build import Built
from edge_agent.models.encoder import PER_TOKEN, VECTOR
from edge_agent.models.spec import ModelSpec, Normalisation, Role, Variant
from edge_agent.models.wheels import Say

Array = npt.NDArray[Any]
Image = npt.NDArray[np.uint8]

# one level of uint8, and the float noise of a graph whose operations were reordered
DETECTOR_TOLERANCE = 1 / 255 + 2e-4
PROBABILITY_TOLERANCE = 2e-3
# below this lead of the best class over the second, float noise may decide between them
CLEAR_LEAD = 5e-3
# where all kept classes together have less than this, the original meant a character that was cut away
KEPT_SHARE = 1e-3
VECTOR_TOLERANCE = 1e-4
DETECTOR_SIZES = ((64, 96), (96, 64), (128, 320))
RECOGNISER_WIDTHS = (96, 224, 320)
TEXTS = ((1, 2, 3, 4, 5, 6, 7), (1, 3, 2))  # token numbers that every vocabulary has
# 5 x 7 dots, a row of bits each, the leftmost the highest
GLYPHS = {
    "L": (16, 16, 16, 16, 16, 16, 31),
    "O": (14, 17, 17, 17, 17, 17, 14),
    "T": (31, 4, 4, 4, 4, 4, 4),
    "E": (31, 16, 16, 30, 16, 16, 31),
    "2": (14, 17, 1, 2, 4, 8, 31),
    "7": (31, 1, 2, 4, 8, 8, 8),
    "1": (4, 12, 4, 4, 4, 4, 14),
    " ": (0, 0, 0, 0, 0, 0, 0),
}
SAMPLE_TEXT = "LOT 27E1"


def runtime_missing() -> str | None:
    """Why nothing can be checked on this machine; None where it can."""
    if importlib.util.find_spec("onnxruntime") is None:
        return "the Python package onnxruntime is not installed"
    return None


def verify_built(
    spec: ModelSpec, sources: Mapping[Role, bytes], built: Mapping[Variant, Built], directory: Path, say: Say
) -> bool:
    """Compares every variant; True when it was done, False where it cannot be, which is said.

    Raises ModelError on a difference.
    """
    reason = runtime_missing()
    if reason is not None:
        say(f"{spec.name}: NOT compared with the original: {reason}")
        return False
    for variant, result in built.items():
        made = result.model.SerializeToString()
        if spec.task == "text_detection":
            note = verify_detector(spec, sources["onnx"], made)
        elif spec.task == "text_recognition":
            note = verify_recogniser(spec, sources["onnx"], made, result.kept)
        elif spec.task == "token_classification":
            session(made)
            note = "taken as it is; ONNX Runtime loads it"
        else:
            note = verify_encoder(spec, made, directory, sources.get("onnx"))
        say(f"{spec.name}: {variant}: {note}")
    return True


def verify_against_original(original_path: Path, built_path: Path, spec: ModelSpec, kept: Sequence[int] = ()) -> str:
    """Compares a built detector or recogniser with the ONNX it was made from and returns the numbers in words.

    `kept` are the classes of a cut head, all when empty. Raises ModelError with the numbers when they differ.
    """
    original, made = original_path.read_bytes(), built_path.read_bytes()
    if spec.task == "text_detection":
        return verify_detector(spec, original, made)
    if spec.task == "text_recognition":
        return verify_recogniser(spec, original, made, kept)
    raise ModelError(f"{spec.name} is a {spec.task} model; there is no original graph to compare with")


def verify_detector(spec: ModelSpec, original: bytes, made: bytes) -> str:
    """Compares the text probability of every pixel."""
    old, new = session(original), session(made)
    if takes_agreed_tensors(new, old):
        return "as the user's graph gives it"
    worst = 0.0
    for height, width in DETECTOR_SIZES:
        for picture in pictures(height, width):
            got = run(new, {surgery.IMAGE: picture})[surgery.PROBABILITY]
            want = run_original(old, picture, spec.normalisation)[:, 0]
            if got.dtype != np.uint8 or got.shape != want.shape:
                raise ModelError(f"{spec.name}: probability is {got.dtype} {got.shape}; expected uint8 {want.shape}")
            worst = worst_of(got.astype(np.float64) / 255 - want, worst)
    if not worst <= DETECTOR_TOLERANCE:
        raise ModelError(
            f"{spec.name}: text probability differs from the original's by {worst:.4f}; at most "
            f"{DETECTOR_TOLERANCE:.4f} is rounding; do not use this model, and report it"
        )
    return f"text probability within {worst:.4f} of the original's"


def verify_recogniser(spec: ModelSpec, original: bytes, made: bytes, kept: Sequence[int] = ()) -> str:
    """Compares the winning class of every step, its probability and the code characters', among the classes kept."""
    assert spec.recogniser is not None
    old, new, codes = session(original), session(made), code_classes(made)
    if takes_agreed_tensors(new, old):
        return "as the user's graph gives it"
    worst, steps, characters, wrong = 0.0, 0, 0, 0
    for width in RECOGNISER_WIDTHS:
        for picture in pictures(spec.recogniser.height_px, width):
            got = run(new, {surgery.IMAGE: picture})
            want = run_original(old, picture, spec.normalisation)
            index, probability, clear = among_kept(want, kept)
            found = got[surgery.INDEX]
            if found.shape != index.shape or found.dtype != np.int32:
                raise ModelError(f"{spec.name}: index is {found.dtype} {found.shape}; expected int32 {index.shape}")
            steps += int(clear.sum())
            characters += int((index > 0)[clear].sum())
            wrong += int((found != index)[clear].sum())
            worst = worst_of((got[surgery.PROBABILITY] - probability)[clear], worst)
            if surgery.CODE_MARGIN in got:
                margins = got[surgery.CODE_MARGIN].astype(np.float64)
                wanted = shares_among(want, kept)[1][..., codes]
                worst = worst_of((got[surgery.PROBABILITY][..., None] * np.exp(margins) - wanted)[clear], worst)
    if wrong or not worst <= PROBABILITY_TOLERANCE:
        raise ModelError(
            f"{spec.name}: {wrong} of {steps} steps read another character than the original, probabilities differ by "
            f"up to {worst:.5f} (at most {PROBABILITY_TOLERANCE} is rounding); do not use this model, and report it"
        )
    return f"{steps} steps read alike, {characters} of them a character, probabilities within {worst:.5f}"


def among_kept(probabilities: Array, kept: Sequence[int]) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Winner (N, T) among the kept classes, its probability there, and where the original leaves no doubt.

    `probabilities` float (N, T, C).
    """
    share, shares = shares_among(probabilities, kept)
    best = np.sort(shares, axis=-1)[..., -2:]
    clear = (share > KEPT_SHARE) & (best[..., 1] - best[..., 0] > CLEAR_LEAD)
    return shares.argmax(axis=-1), best[..., 1], clear


def shares_among(probabilities: Array, kept: Sequence[int]) -> tuple[Array, Array]:
    """The kept classes' share of all (N, T), and the probabilities among them (N, T, kept), float64: a softmax over
    fewer classes is the old one divided by their share. `probabilities` float (N, T, C)."""
    some = probabilities.astype(np.float64)
    some = some[..., list(kept)] if kept else some
    share = some.sum(axis=-1)
    return share, some / np.maximum(share, 1e-30)[..., None]


def code_classes(made: bytes) -> list[int]:
    """The classes that a built recogniser gives margins of; none where it gives no margins."""
    stored = onnx.load_model_from_string(made).graph.initializer
    found = [tensor for tensor in stored if tensor.name == surgery.CODE_CLASSES]
    return [int(n) for n in numpy_helper.to_array(found[0])] if found else []


def verify_encoder(spec: ModelSpec, made: bytes, directory: Path, original: bytes | None = None) -> str:
    """Compares with the original graph or the reference vectors where there are some.

    Vectors must be finite, and the same alone and in a batch.
    """
    engine = session(made)
    vectors_of_batch(spec, engine)
    assert spec.encoder is not None
    if original is not None:
        return compare_encoders(spec, session(original), engine)
    if spec.encoder.reference is None:
        return "vectors are finite and do not depend on the batch; there are no reference vectors to compare with"
    reference = read_reference(directory / spec.encoder.reference)
    worst = 0.0
    for entry in reference:
        got = embed(engine, [entry["input_ids"]])[0]
        worst = worst_of(got[: len(entry["vector"])] - np.asarray(entry["vector"]), worst)
    if not worst <= VECTOR_TOLERANCE:
        raise ModelError(
            f"{spec.name}: vectors differ from the reference by {worst:.6f}; at most {VECTOR_TOLERANCE} is rounding; "
            "do not use this model, and report it"
        )
    return f"{len(reference)} reference vectors met within {worst:.7f}"


def compare_encoders(spec: ModelSpec, old: Any, new: Any) -> str:
    """Vectors of the original graph, pooled here where it gives one per token, against the built one's."""
    worst = 0.0
    for text in TEXTS:
        want = embed(old, [text])
        want = want.mean(axis=1) if want.ndim == 3 else want
        want = want / np.linalg.norm(want, axis=1, keepdims=True)
        worst = worst_of(embed(new, [text]) - want, worst)
    if not worst <= VECTOR_TOLERANCE:
        raise ModelError(
            f"{spec.name}: vectors differ from the original's by {worst:.6f}; at most {VECTOR_TOLERANCE} is rounding; "
            "do not use this model, and report it"
        )
    return f"{len(TEXTS)} vectors within {worst:.7f} of the original's"


def vectors_of_batch(spec: ModelSpec, engine: Any) -> None:
    """Raises ModelError unless texts alone and in a padded batch have the same finite vectors."""
    together = embed(engine, TEXTS)
    alone = np.concatenate([embed(engine, [text]) for text in TEXTS])
    difference = float(np.abs(together - alone).max())
    if not np.isfinite(together).all() or not difference < 1e-3:
        raise ModelError(
            f"{spec.name}: the vector of a text changes by {difference:.4f} with what else is in the batch; "
            "expected none: is attention_mask used?"
        )


def embed(engine: Any, texts: Sequence[Sequence[int]]) -> Array:
    """The vectors, or those per token, for texts given as token numbers and padded with 0."""
    length = max(map(len, texts))
    ids = np.array([[*text, *[0] * (length - len(text))] for text in texts])
    mask = np.array([[1] * len(text) + [0] * (length - len(text)) for text in texts])
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
    feeds["position_ids"] = np.broadcast_to(np.arange(length), ids.shape)
    dtypes = {value.name: np.int32 if "int32" in value.type else np.int64 for value in engine.get_inputs()}
    unknown = sorted(set(dtypes) - set(feeds))
    if unknown:
        raise ModelError(f"the graph takes {', '.join(unknown)}; known inputs are {', '.join(feeds)}")
    outputs = [value.name for value in engine.get_outputs()]
    wanted = next((name for name in (VECTOR, *PER_TOKEN) if name in outputs), outputs[0])
    feed = {name: feeds[name].astype(dtype) for name, dtype in dtypes.items()}
    return np.asarray(outputs_of(engine, [wanted], feed)[0], np.float64)


def read_reference(path: Path) -> list[dict[str, Any]]:
    """Reference vectors: a list of text, input_ids and the first numbers of vector."""
    try:
        value = yaml.safe_load(path.read_bytes())
        return [{"input_ids": list(e["input_ids"]), "vector": list(e["vector"])} for e in value["sentences"]]
    except (OSError, yaml.YAMLError, TypeError, KeyError) as exc:
        raise ModelError(
            f"{path.name} beside model.yaml cannot be read ({exc}); take it from the distribution again"
        ) from exc


def session(content: bytes) -> Any:
    """An ONNX Runtime session on the CPU with as few threads as it takes; ModelError where the graph is refused."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except runtime_errors() as exc:
        raise ModelError(f"ONNX Runtime refuses the graph: {in_one_line(exc)}") from exc


def runtime_errors() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises; its exceptions have no common base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented", "RuntimeException")
    return tuple(getattr(state, name) for name in names)


def run(engine: Any, feed: Mapping[str, Array]) -> dict[str, Array]:
    """All outputs by name."""
    names = [value.name for value in engine.get_outputs()]
    return dict(zip(names, outputs_of(engine, names, feed), strict=True))


def outputs_of(engine: Any, names: Sequence[str], feed: Mapping[str, Array]) -> list[Array]:
    """The outputs called `names`; ModelError where the graph cannot take the feed."""
    try:
        return [np.asarray(output) for output in engine.run(list(names), dict(feed))]
    except runtime_errors() as exc:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in feed.items())
        raise ModelError(f"the graph fails on {shapes}: {in_one_line(exc)}") from exc


def worst_of(differences: Array, so_far: float) -> float:
    """The largest difference from 0 yet; not a number once any of them was none, which no limit lets pass."""
    return float(np.abs(differences).max(initial=so_far))


def run_original(engine: Any, picture: Image, norm: Normalisation | None) -> Array:
    """The original graph's output for pictures uint8 (N, H, W, 3) BGR, normalised as it was trained.

    ModelError where it is not finite: such a graph reads nothing, and agrees with every other that does not.
    """
    assert norm is not None
    pixels = picture[..., ::-1] if norm.colour_order == "RGB" else picture
    normal = (pixels.astype(np.float64) * norm.scale - norm.mean) / norm.std
    feed = np.ascontiguousarray(normal.transpose(0, 3, 1, 2).astype(np.float32))
    names = [engine.get_outputs()[0].name]
    output = outputs_of(engine, names, {engine.get_inputs()[0].name: feed})[0]
    if not np.isfinite(output).all():
        raise ModelError(f"the original gives values that are not finite for a picture of {feed.shape}; it is damaged")
    return output


def steps_of(content: bytes, height_px: int, width_px: int) -> int:
    """How many steps a recogniser gives for a line of that size, whatever picture it takes."""
    engine = session(content)
    source = engine.get_inputs()[0]
    shape = (1, height_px, width_px, 3) if "uint8" in source.type else (1, 3, height_px, width_px)
    dtype = np.uint8 if "uint8" in source.type else np.float32
    try:
        output = engine.run(None, {source.name: np.zeros(shape, dtype)})[0]
    except runtime_errors() as exc:
        raise ModelError(f"the graph does not take a line of {height_px} x {width_px} px: {in_one_line(exc)}") from exc
    return int(np.shape(output)[1])


def takes_agreed_tensors(new: Any, old: Any) -> bool:
    """Whether the original already has the tensors of the built graph: then nothing was changed."""
    return [(v.name, v.type) for v in new.get_inputs()] == [(v.name, v.type) for v in old.get_inputs()]


def pictures(height_px: int, width_px: int) -> list[Image]:
    """Made pictures, uint8 (N, H, W, 3): noise and a ramp in one batch, flat ones, and a line of text."""
    random = np.random.default_rng(7)
    noise = random.integers(0, 256, (height_px, width_px, 3), np.uint8)
    ramp = np.broadcast_to(np.linspace(0, 255, width_px).astype(np.uint8)[None, :, None], noise.shape)
    tinted = np.full(noise.shape, (250, 180, 90), np.uint8)
    return [np.stack([noise, ramp]), tinted[None], text_picture(height_px, width_px)[None]]


def text_picture(height_px: int, width_px: int, text: str = SAMPLE_TEXT) -> Image:
    """Dark text on a light ground, as large as fits: uint8 (H, W, 3)."""
    dots = np.concatenate(
        [
            np.array([[(row << 1) >> (5 - place) & 1 for place in range(6)] for row in GLYPHS[c]], np.uint8)
            for c in text
        ],
        axis=1,
    )
    size = max(1, min(height_px * 2 // 3 // dots.shape[0], width_px // dots.shape[1]))
    ink = np.kron(dots, np.ones((size, size), np.uint8))[:height_px, :width_px]
    picture = np.full((height_px, width_px, 3), 225, np.uint8)
    top, left = (height_px - ink.shape[0]) // 2, (width_px - ink.shape[1]) // 2
    picture[top : top + ink.shape[0], left : left + ink.shape[1]][ink == 1] = (30, 40, 50)
    return picture
