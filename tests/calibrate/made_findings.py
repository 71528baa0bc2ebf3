"""Findings as calibrations have them, made up: of a recogniser that was promoted, of a detector that was refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edge_agent.calibrate.findings import (
    CalibratedOn,
    ChangedText,
    Findings,
    GroupFinding,
    Machine,
    MethodTried,
    Picture,
    Size,
    Tried,
    figures_of,
)
from edge_agent.calibrate.judgement import GateResult
from edge_agent.calibrate.pictures import as_jpeg
from edge_agent.calibrate.timing import FeedTimes, RunTimes, Timing
from edge_agent.calibrate.trial import Conflict

MADE_AT = 1_796_047_512.25  # 2026-11-30 14:05:12 UTC


def picture(name: str, grey: int = 128, width_px: int = 48, height_px: int = 24) -> Picture:
    """A plain small picture."""
    return as_jpeg(name, np.full((height_px, width_px, 3), grey, np.uint8))


def machine() -> Machine:
    return Machine(
        "Intel Xeon (Sapphire Rapids), 2 cores",
        "onnxruntime",
        "1.32.0",
        "0.1.0",
        {"numpy": "2.4.6", "onnx": "1.20.0", "onnxruntime": "1.32.0", "opencv": "5.0.0"},
    )


def collection() -> CalibratedOn:
    counts = {
        "source": "folder press-7/frames",
        "offered": 214,
        "used": 60,
        "calibration": 36,
        "search": 9,
        "held_out": 15,
        "near_duplicates": 118,
        "without_texture": 3,
        "left_out": 31,
        "skipped": 2,
        "skipped_files": [
            {"name": "Thumbs.db", "reason": "is no image"},
            {"name": "img_0093.jpg", "reason": "JPEG is damaged: premature end of file"},
        ],
        "labelled": 12,
        "sizes": {"1280x720": 60},
        "note": "",
    }
    shapes = {
        "8x48x224x3": 9, "8x48x320x3": 22, "4x48x320x3": 4, "8x48x400x3": 31, "8x48x480x3": 25, "6x48x480x3": 3,
        "8x48x640x3": 18, "8x48x800x3": 11, "3x48x800x3": 2, "4x48x1024x3": 5, "2x48x1280x3": 3, "1x48x1600x3": 1,
    }  # fmt: skip
    thumbnails = tuple(picture(f"img_{n:04}.jpg", 40 + 8 * n) for n in range(24))
    return CalibratedOn.of(counts, "5f0c" * 16, shapes, feeds_left_out=240, thumbnails=thumbnails)


def groups() -> tuple[GroupFinding, ...]:
    rows: list[tuple[str, int, int, bool, float | None, float | None, str]] = [
        ("stem", 3, 5_184, False, None, None, "the first layer sees raw pixels, and it is small"),
        ("depthwise.s2", 4, 14_400, True, 0.06, -0.11, "slower than float alone"),
        ("pointwise.s2", 6, 98_304, True, 0.12, 0.84, ""),
        ("depthwise.s4", 5, 28_800, True, 0.05, 0.02, ""),
        ("pointwise.s4", 8, 786_432, True, 0.21, 1.92, ""),
        ("depthwise.s8", 6, 57_600, False, 1.64, 0.05, "breaks a gate alone"),
        ("pointwise.s8", 10, 3_145_728, True, 0.3, 3.41, ""),
        ("gates", 12, 147_456, False, None, None, "squeeze-and-excite gates scale whole channels, and they are tiny"),
        ("neck", 4, 2_359_296, True, 0.18, 1.12, ""),
        ("attention", 4, 0, False, None, None, "products of two activations have no weights to gain by"),
        ("head", 1, 3_538_944, False, None, None, "the last layer decides every character"),
    ]
    return tuple(
        GroupFinding(name, tuple(f"{name}.{n}" for n in range(nodes)), weights, quantised, damage, gain, note)
        for name, nodes, weights, quantised, damage, gain, note in rows
    )


def tensor_ranges() -> dict[str, tuple[float, float]]:
    """Forty tensors of every size: one-sided, two-sided, wide and small."""
    found = {f"p2o.Conv.{n}.out": (-0.04 * 1.31**n, 0.07 * 1.29**n) for n in range(26)}
    found |= {f"p2o.HardSwish.{n}.out": (-0.375, 1.7 * 1.4**n) for n in range(10)}
    found |= {f"p2o.Sigmoid.{n}.out": (0.0, 0.97 + n / 400) for n in range(4)}
    return {name: (float(f"{low:.5g}"), float(f"{high:.5g}")) for name, (low, high) in found.items()}


def timing() -> Timing:
    """INT8 is faster, most on wide lines."""
    feeds = tuple(
        FeedTimes(shape, weight, float_ms, int8_ms)
        for shape, weight, float_ms, int8_ms in (
            ("8x48x320x3", 22.0, 19.4, 15.7),
            ("8x48x480x3", 25.0, 28.1, 21.6),
            ("8x48x800x3", 11.0, 46.2, 33.9),
        )
    )
    return Timing(
        1.3102,
        1.282,
        1.337,
        RunTimes(27.66, 27.41, 31.9, 400, 0.418),
        RunTimes(21.11, 20.92, 24.06, 400, 0.331),
        feeds,
        50,
    )


def promoted() -> Findings:
    """A recogniser that earned its place."""
    return Findings(
        model="ppocrv6-small-rec",
        task="text_recognition",
        variant="latin",
        scheme="onnxruntime",
        float_precision="FP32",
        machine=machine(),
        verdict="promoted",
        calibrated_on=collection(),
        before=Size(21_211_846, 171_000_000),
        after=Size(6_042_311, 118_000_000),
        made_at=MADE_AT,
        took_s=143.2,
        promoted_at=MADE_AT + 1,
        artefact="20261130T140512Z-9c1de0a44b21",
        timing=timing(),
        figures=figures_of(
            {
                "frames": 15.0,
                "lines": 231.0,
                "changed_lines": 4.0,
                "chars": 2964.0,
                "labelled_lines": 88.0,
                "cer_increase": 0.00075,
                "cer_to_float": 0.00241,
                "cer_to_float_with_spaces": 0.0039,
                "label_cer_float": 0.00312,
                "label_cer_int8": 0.00387,
            }
        )
        + figures_of(
            {"readings": 15.0, "changed_readings": 3.0, "field_values": 139.0, "changed_fields": 0.0072},
            "whole readings",
        ),
        gates=(
            GateResult("cer_increase", 0.00075, 0.005, "share", True, damage=0.15),
            GateResult("changed_fields", 0.0072, 0.05, "share", True, damage=0.14),
            GateResult("speedup", 1.3102, 1.05, "times", True),
        ),
        changed=(
            ChangedText("img_0012.jpg", "LOT B230417", "LOT 8230417", "LOT B230417", picture("line 1", 200, 300, 48)),
            ChangedText("img_0012.jpg", "S/N EX7-22914", "S/N EX7-22914.", None, picture("line 2", 180, 420, 48)),
            ChangedText(
                "img_0044.jpg", "EXP 2028-O3-28", "EXP 2028-03-28", "EXP 2028-03-28", picture("line 3", 210, 350)
            ),
            ChangedText("img_0051.jpg", "Wear protective gloves", "", None, None),
        ),
        changed_count=4,
        methods=(
            MethodTried("minmax", 1.42, passed=False, chosen=False),
            MethodTried("percentile", 0.31, passed=True, chosen=True),
            MethodTried("entropy", 0.58, passed=True, chosen=False),
        ),
        groups=groups(),
        tried=(
            Tried("all groups, minmax", "minmax", ("neck", "pointwise.s8"), 1.42, 20.1, passed=False),
            Tried("all groups, percentile", "percentile", ("neck", "pointwise.s8"), 0.31, 20.9, passed=True),
            Tried("neck alone", "percentile", ("neck",), 0.18, 26.3, passed=True),
        ),
        ranges=tensor_ranges(),
        came_from={"float model": "a1b2" * 16, "int8 model": "9c1d" * 16, "recorded inputs": "77ef" * 16},
    )


def refused() -> Findings:
    """A detector that loses boxes and gains no time."""
    recognised = promoted()
    on = replace(recognised.calibrated_on, shapes={"1x736x1312x3": 51, "1x704x1280x3": 9}, feeds=60, feeds_left_out=0)
    return replace(
        recognised,
        model="ppocrv4-mobile-det",
        task="text_detection",
        variant="cpu",
        verdict="refused",
        promoted_at=None,
        artefact=None,
        calibrated_on=on,
        before=Size(4_750_112),
        after=Size(1_250_904),
        timing=Timing(
            0.965,
            0.94,
            0.99,
            RunTimes(88.3, 88.2, 97.0, 60),
            RunTimes(91.5, 91.4, 99.1, 60),
            (FeedTimes("1x736x1312x3", 60.0, 88.2, 91.4),),
            30,
            ("no RAPL counters under /sys/class/powercap: not an x86 Linux machine, or a virtual one",),
        ),
        reasons=("The detector loses 2.8 boxes of 100 with the best of 31 sets of groups.",),
        advice=(
            "Collect frames that show small print: --frames with 100 frames or more.",
            "Leave the first convolutions float: float_groups: [stem, depthwise.s2] in the recipe.",
        ),
        figures=figures_of(
            {
                "frames": 15.0,
                "float_boxes": 254.0,
                "int8_boxes": 249.0,
                "box_recall": 0.972,
                "repeat_box_recall": 0.996,
                "mask_iou": 0.904,
            }
        ),
        gates=(
            GateResult("box_recall", 0.972, 0.99, "share", False, "7 of 254 boxes of the float engine are not found"),
            GateResult("box_precision", 0.9934, 0.99, "share", True),
            GateResult("speedup", 0.965, 1.05, "times", False, "INT8 runs 0.97 times as fast as float: keep float"),
        ),
        conflicts=(Conflict(("neck", "head"), "Could not find any implementation for node p2o.Conv.41"),),
        search_stopped="60 trials were made, the limit",
    )
