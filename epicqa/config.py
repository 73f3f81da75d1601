"""How to answer: one frozen object, from defaults, a file and flags; a manifest holds it whole."""

from __future__ import annotations

import dataclasses
import numbers
import os
import tomllib
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from epicqa.errors import EpicqaError
from epicqa.jsonfiles import read_json, read_text

Retriever = Literal["bm25", "dense", "hybrid"]
Fields = Literal["question", "query", "background", "question+query", "all"]
Fusion = Literal["rrf", "minmax"]
Diversity = Literal["mmr", "novelty", "none"]
Backend = Literal["auto", "torch", "openvino"]
Audience = Literal["expert", "general"]


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides what a run holds, besides the index and the questions' text.

    Attributes:
        index: name of the index; None stands for that of the questions' own collection, where the documents
            are in the folder of ``data`` (see ``epicqa.collection_index``), else ``default``, or the sample
            where that is all there is.
        questions: expert, general, all, or a question file.
        data: folder in the track's layout that expert and general, and their collections, come from; None:
            EPICQA_DATA, the sample.
        task: its part, ae (preliminary) or e2e (primary), or all.
        judgments: answer file to note in the manifest; None: the sample's, for its questions.
        description: a line for the batch that is sent in.
        depth: passages a question.
        retriever: bm25, dense or hybrid; None takes the best that the index can do.
        fields: which texts of a question BM25 searches for; ``all`` is question, query and background.
        dense_fields: which of them the vector is of.
        k1, b: BM25's term saturation and length normalisation.
        rm3: expand the question by pseudo-relevance feedback.
        fusion: how hybrid joins its two rankings.
        dense_weight: the dense ranking's share in it, 0 to 1.
        context_weight: weight of the other sentences of a sentence's context, see ``retrieve.context``.
        pool: sentences that a retriever gives.
        max_sentences: of a passage; it is longer than one where that is expected to gain.
        reranker: cross-encoder, by name or path: epicqa is the one that comes with the package; or none.
        backend: what computes its scores, torch or openvino; auto takes the faster on this machine.
        bi_encoder: encoder whose vectors of question and passages are compared, by name or path; or none.
        rerank_fields: which texts of a question the two are given.
        rerank_depth: passages that they score.
        audience: whom the passages are for: of two that answer as well, the public gets the one in plainer
            words, experts the one in the field's own; None makes no difference.
        first_weight, bi_encoder_weight, cross_encoder_weight, length_weight: of retrieval's scores, of the
            two models', and of a passage's length, in the sum that passages are reranked by.
        budget: seconds for reranking all questions, spent on them evenly; None: no limit.
        diversity: order in which each passage is to say something new: mmr, novelty or none; None takes
            novelty after a bi-encoder, mmr where the index has vectors, else none.
        mmr_weight: MMR's weight of novelty against relevance, 0 to 1.
        source_run: another system's run to rerank and diversify instead of retrieving.
    """

    index: str | None = None
    questions: str = "expert"
    data: str | None = None
    task: Literal["ae", "e2e", "all"] = "ae"
    judgments: str | None = None
    description: str | None = None
    depth: int = 1000
    retriever: Retriever | None = None
    fields: Fields = "all"
    k1: float = 0.9
    b: float = 0.4
    rm3: bool = False
    dense_fields: Fields = "question"
    fusion: Fusion = "minmax"
    dense_weight: float = 0.4
    context_weight: float = 0.4
    pool: int = 2000
    max_sentences: int = 1
    reranker: str = "epicqa"
    backend: Backend = "auto"
    bi_encoder: str = "minilm"
    rerank_fields: Fields = "question"
    rerank_depth: int = 400
    audience: Audience | None = None
    first_weight: float = 1.0
    bi_encoder_weight: float = 2.0
    cross_encoder_weight: float = 0.5
    length_weight: float = 1.5
    budget: float | None = None
    diversity: Diversity | None = None
    mmr_weight: float = 0.3
    source_run: str | None = None

    def __post_init__(self) -> None:
        for name, kind in _TYPES.items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, _fitted(kind, value))
            except ValueError:
                raise EpicqaError(f"{name} = {value!r}, expected {_words(kind)}") from None
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            # NaN is in no range either.
            if value is not None and not low <= value <= high:
                raise EpicqaError(f"{name} is {value}, expected {low} to {high}")


_LIMITS: dict[str, tuple[float, float]] = {
    "depth": (1, 1000),
    "k1": (0, 100),
    "b": (0, 1),
    "dense_weight": (0, 1),
    "context_weight": (0, 10),
    "pool": (1, 1_000_000),
    "max_sentences": (1, 100),
    "rerank_depth": (1, 1000),
    "first_weight": (0, 100),
    "bi_encoder_weight": (0, 100),
    "cross_encoder_weight": (0, 100),
    "length_weight": (0, 100),
    "budget": (0, 1e9),
    "mmr_weight": (0, 1),
}


def load_config(path: Path | None, flags: Mapping[str, Any], defaults: Config | None = None) -> Config:
    """Defaults, over them the file, over it the flags.

    Args:
        path: a TOML file with the names of ``Config``, or a run's manifest (``.json``).
        flags: values of ``Config``; None means not given.
        defaults: instead of ``Config()``.

    Raises:
        EpicqaError: the file cannot be read, or holds an unknown name or a value of a wrong type or size.
    """
    config = defaults or Config()
    if path is not None:
        content = _content(path)
        try:
            config = _changed(config, content)
        except EpicqaError as error:
            raise EpicqaError(f"{path}: {error}") from None
    return _changed(config, {name: value for name, value in flags.items() if value is not None})


def as_dict(config: Config) -> dict[str, Any]:
    return dataclasses.asdict(config)


def _content(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        manifest = read_json(path, dict, "the manifest of a run")
        found = manifest.get("config")
        if not isinstance(found, dict):
            raise EpicqaError(f"{path}: no 'config', expected the manifest that epicqa run writes")
        return found
    try:
        return tomllib.loads(read_text(path))
    # A number of too many digits or tables nested too deeply are no TOMLDecodeError.
    except (ValueError, RecursionError) as error:
        raise EpicqaError(f"{path}: not TOML ({error}), expected lines such as k1 = 0.9") from None


def _changed(config: Config, values: Mapping[str, Any]) -> Config:
    for name in values:
        if name not in _TYPES:
            raise EpicqaError(f"unknown setting {name!r}, expected one of {', '.join(_TYPES)}")
    return dataclasses.replace(config, **values)


_TYPES = typing.get_type_hints(Config)


def _fitted(kind: Any, value: Any) -> Any:
    """A value as its kind has it, so that equal settings are written alike; ValueError where it is none."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        for one in typing.get_args(kind):
            with suppress(ValueError):
                return _fitted(one, value)
    elif typing.get_origin(kind) is Literal:
        if isinstance(value, str) and value in typing.get_args(kind):
            return value
    elif kind is float and isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            return float(value)
    elif kind is int and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    elif kind is str and isinstance(value, str | os.PathLike):
        # No file's name holds NUL, and the system calls raise at it.
        if "\0" not in (text := os.fsdecode(value)):
            return text
    elif kind in (bool, types.NoneType) and type(value) is kind:
        return value
    raise ValueError


def _words(kind: Any) -> str:
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return " or ".join(_words(one) for one in typing.get_args(kind) if one is not type(None))
    if typing.get_origin(kind) is Literal:
        return ", ".join(map(str, typing.get_args(kind)))
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
