"""The manifest beside a run file, as far as reading runs needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epicqa import sample
from epicqa.errors import EpicqaError
from epicqa.jsonfiles import read_json

VERSION = 1

_TYPES = {"index": str, "index_fingerprint": str, "questions": dict, "judgments": str, "config": dict}


def manifest_path(run: Path) -> Path:
    """``NAME.json`` beside the run ``NAME.tsv``."""
    return run.with_suffix(".json")


def read_manifest(run: Path) -> dict[str, Any] | None:
    """The manifest of a run without its nulls, or None when no file, or some other JSON, stands beside it.

    Raises:
        EpicqaError: the file is broken, of another version, or has a value of a wrong type.
    """
    path = manifest_path(run)
    if path == run or not path.is_file():
        return None
    manifest: dict[str, Any] = read_json(path, dict, "the manifest of a run")
    version = manifest.get("epicqa_manifest")
    if version is None:
        return None
    if version != VERSION:
        raise EpicqaError(f"{path}: manifest of version {version!r}, this epicqa reads version {VERSION}")
    for key, kind in _TYPES.items():
        if manifest.get(key) is None:
            manifest.pop(key, None)
        elif not isinstance(manifest[key], kind):
            raise EpicqaError(f"{path}: {key!r} is not a {kind.__name__}, expected what epicqa run writes")
    ids = manifest.get("questions", {}).get("ids", [])
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise EpicqaError(
            f"{path}: 'ids' of 'questions' is not a list of ids, expected what epicqa run writes"
        )
    return manifest


def judgments_of(run: Path) -> Path:
    """The answer file that a run's manifest names: the sample's, or a path, relative ones from the manifest.

    Raises:
        EpicqaError: no manifest, or it names none.
    """
    manifest = read_manifest(run)
    named = (manifest or {}).get("judgments")
    if not named:
        why = (
            f"no manifest {manifest_path(run).name} beside it"
            if manifest is None
            else "its manifest names none"
        )
        raise EpicqaError(f"{run}: judgments unknown ({why}), pass --judgments FILE")
    return sample.judgments_path() if named == "sample" else manifest_path(run).parent / named
