"""The thresholds of a trained claim model, chosen on held-out examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.examples import Example
from epicqa.claims.model import Reading
from epicqa.claims.network import LABEL_ORDER, Settings
from epicqa.claims.scifact import NOINFO

GRID = tuple(round(0.02 * step, 2) for step in range(1, 50))
"""The thresholds that are tried."""

# Sentences of an abstract that count for it, as in `epicqa.claims.scifact_scores`.
_CONSIDERED = 3


def tune(settings: Settings, examples: Sequence[Example], readings: Sequence[Reading]) -> Settings:
    """Settings with the thresholds of the highest F1; of equal ones those nearest to a half.

    - ``rationale``: of all sentences together.
    - ``label``: of the examples that are evidence, with the right label.
    - ``joint``: the mean of two, each example taken as an abstract: of the sentences of rationales, where the
      label is right; of the examples that are evidence, with the right label and a sentence of a rationale
      among the first three. Both are near to SciFact's measures, which know which sentences belong together.

    An example counts where both the label and the rationale that its kind tells of are known. Without any
    that tell, the settings are as they were.
    """
    best, at = -1.0, settings
    gold, flags, labels, sentences = _tables(
        [
            (one, read)
            for one, read in zip(examples, readings, strict=True)
            if (settings.kind == "rationale" or one.label is not None)
            and (settings.kind == "label" or one.rationale is not None)
        ]
    )
    for evidence in GRID if settings.kind != "rationale" else (settings.evidence_threshold,):
        told = _labels(labels, evidence) if settings.kind != "rationale" else gold
        for threshold in GRID if settings.kind != "label" else (settings.threshold,):
            value = _value(settings, gold, flags, told, sentences > threshold, sentences)
            moved = replace(settings, threshold=threshold, evidence_threshold=evidence)
            if value > best + 1e-12 or (abs(value - best) <= 1e-12 and _off(moved) < _off(at)):
                best, at = max(value, best), moved
    return at if best > 0 else settings


def _off(settings: Settings) -> float:
    return abs(settings.threshold - 0.5) + abs(settings.evidence_threshold - 0.5)


def _tables(
    known: Sequence[tuple[Example, Reading]],
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Gold: labels int64[n], flags bool[n, m]; read: float64[n, 3], float64[n, m], -1 where there is none."""
    most = max([1, *(len(one.sentences) for one, _ in known)])
    gold = np.full(len(known), LABEL_ORDER.index(NOINFO))
    flags = np.zeros((len(known), most), dtype=bool)
    labels = np.tile([0.0, 1.0, 0.0], (len(known), 1))
    sentences = np.full((len(known), most), -1.0)
    for row, (one, read) in enumerate(known):
        if one.label is not None:
            gold[row] = LABEL_ORDER.index(one.label)
        if one.rationale is not None:
            flags[row, : len(one.rationale)] = one.rationale
        if read.labels is not None:
            labels[row] = read.labels
        if read.sentences is not None:
            sentences[row, : len(read.sentences)] = read.sentences
    return gold, flags, labels, sentences


def _labels(labels: NDArray[np.float64], evidence: float) -> NDArray[np.int64]:
    """int64[n]: the likelier of the two labels of evidence where it is evidence."""
    told = np.where(labels[:, 0] >= labels[:, 2], 0, 2)
    told[1 - labels[:, 1] <= evidence] = LABEL_ORDER.index(NOINFO)
    return told


def _value(
    settings: Settings,
    gold: NDArray[np.int64],
    flags: NDArray[np.bool_],
    told: NDArray[np.int64],
    selected: NDArray[np.bool_],
    sentences: NDArray[np.float64],
) -> float:
    none = LABEL_ORDER.index(NOINFO)
    if settings.kind == "rationale":
        return _f1(int((selected & flags).sum()), int(selected.sum()), int(flags.sum()))
    right = (told == gold) & (gold != none)
    if settings.kind == "label":
        return _f1(int(right.sum()), int((told != none).sum()), int((gold != none).sum()))
    kept = (told != none) & selected.any(axis=1)
    rows = selected[right]
    of_sentences = _f1(int((rows & flags[right]).sum()), int(selected[kept].sum()), int(flags.sum()))
    # The first three of those selected are the three most probable, if they are selected.
    first = np.zeros_like(flags)
    order = np.argsort(-sentences, axis=1, kind="stable")[:, :_CONSIDERED]
    np.put_along_axis(first, order, np.take_along_axis(selected, order, axis=1), axis=1)
    hits = int((right & (first & flags).any(axis=1)).sum())
    return (of_sentences + _f1(hits, int(kept.sum()), int((gold != none).sum()))) / 2


def _f1(right: int, predicted: int, gold: int) -> float:
    return 2 * right / (predicted + gold) if right else 0.0
