"""Box match: which boxes of two detectors stand around the same text, by intersection over union (IoU)."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad

SAME_BOX_IOU = 0.5  # PASCAL VOC (Everingham et al., 2010) and the ICDAR 2015 protocol


def quad_iou(first: Quad, second: Quad) -> float:
    """Area of the intersection over that of the union, 0..1; 0 where either has no area."""
    hulls = cv2.convexHull(first.points), cv2.convexHull(second.points)  # corners clipped to the frame can fold a quad
    areas = [cv2.contourArea(hull) for hull in hulls]
    if min(areas) <= 0:
        return 0.0
    shared, _ = cv2.intersectConvexConvex(*hulls)
    return float(np.clip(shared / (sum(areas) - shared), 0.0, 1.0))


def matched(first: Sequence[Quad], second: Sequence[Quad], least_iou: float = SAME_BOX_IOU) -> list[tuple[int, int]]:
    """Pairs of indices, each index at most once: those with the largest IoU first, never below `least_iou`."""
    ious = [(quad_iou(first[i], second[j]), i, j) for i, j in neighbours(first, second)]
    pairs: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for iou, i, j in sorted(ious, key=lambda found: (-found[0], found[1], found[2])):
        if iou < least_iou:
            break
        if i not in taken[0] and j not in taken[1]:
            pairs.append((i, j))
            taken[0].add(i)
            taken[1].add(j)
    return sorted(pairs)


def same_places(first: Sequence[Quad], second: Sequence[Quad]) -> list[tuple[list[int], list[int]]]:
    """Groups of boxes that hold the same text, as (indices of `first`, indices of `second`), in the order of `first`.

    Two boxes belong together where they match or the centre of one lies in the other; so one box around two words
    meets the two boxes that the other detector found. What only one of them found stands alone.
    """
    parent = list(range(len(first) + len(second)))

    def root(n: int) -> int:
        while parent[n] != n:
            parent[n] = n = parent[parent[n]]
        return n

    for i, j in neighbours(first, second):
        a, b = first[i], second[j]
        if holds(a, b.centre) or holds(b, a.centre) or quad_iou(a, b) >= SAME_BOX_IOU:
            low, high = sorted((root(i), root(len(first) + j)))
            parent[high] = low
    groups: dict[int, tuple[list[int], list[int]]] = {}
    for n in range(len(parent)):
        mine = groups.setdefault(root(n), ([], []))
        if n < len(first):
            mine[0].append(n)
        else:
            mine[1].append(n - len(first))
    return list(groups.values())


def holds(quad: Quad, point: npt.NDArray[np.float32]) -> bool:
    """Whether the point (x, y) px lies in the quad or on its edge."""
    return bool(cv2.pointPolygonTest(cv2.convexHull(quad.points), (float(point[0]), float(point[1])), False) >= 0)


def neighbours(first: Sequence[Quad], second: Sequence[Quad]) -> list[tuple[int, int]]:
    """Pairs of indices whose upright bounding boxes touch: only those can overlap."""
    if not first or not second:
        return []
    a, b = (np.stack([quad.points for quad in quads]) for quads in (first, second))
    touch = (a.min(axis=1)[:, None] <= b.max(axis=1)[None]) & (a.max(axis=1)[:, None] >= b.min(axis=1)[None])
    return [(int(i), int(j)) for i, j in np.argwhere(touch.all(axis=2))]
