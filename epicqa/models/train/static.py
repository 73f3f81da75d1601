"""Train a static-embedding model on pairs of a query and a text that answers it."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.files import digest_of, remove_tree, replacing, sha256_of, sync_folder, write_bytes
from epicqa.index.encode import encode_corpus
from epicqa.models.encoder import Encoder, StaticEncoder, open_static
from epicqa.models.places import STATIC, resolve
from epicqa.models.quiet import quiet
from epicqa.models.resolve import load_encoder
from epicqa.models.train.pairs import Pair, fingerprint

if TYPE_CHECKING:
    import torch

DEPTH = 100
"""Depth of the recall that is told."""

Progress = Callable[[str, int, int | None], None]

# Another number where the same recipe gives other weights.
_METHOD = 1
_WARM_UP = 0.1
_SAVE_SECONDS = 20.0
# How many batches' worth of pairs are looked through to fill one.
_LOOK = 8
_CHUNK = 1024
_CHECKPOINT = "checkpoint.safetensors"
_RECORD = Path("training") / "recipe.json"
_LOG = Path("training") / "log.csv"
_COLUMNS = ("step", "epoch", "pairs", "learning_rate", "loss")


_CARD = """\
---
library_name: sentence-transformers
tags:
- static-embeddings
- sentence-similarity
---
# A static-embedding model trained with epicqa

One vector a word piece, a text is their mean; for a first, wide retrieval of sentences that answer questions.

| | |
|---|---|
| vectors | {tokens} word pieces, {dimensions} dimensions, float16 |
| base | {base}, fingerprint `{base_fingerprint}` |
| teacher | {teacher} |
| method | multiple-negatives ranking loss, Adam; {recipe} |
| pairs | {pairs} |
| command | `{command}` |
| `model.safetensors` | SHA-256 `{weights}` |
| log | `training/log.csv`: loss and learning rate of every step |

## Data

| source | licence | SHA-256 of its pairs |
|---|---|---|
{data}

## Figures

{measured}

## Limits

It knows no word order and no negation, and no words beyond its base's word pieces. English only. What the
pairs do not speak of is as the base has it, or a little worse. Use it together with BM25 or a reranker.
"""


_MEASURED = """\
{queries} queries of {held} held-out pairs, each ranked over the texts of all pairs, training's too.

| | MRR | recall@{depth} |
|---|---|---|
| base | {base} |
| this model | {trained} |"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the weights follow from, beside the pairs.

    Attributes:
        base: model to start from, as ``places.resolve`` finds it; it must be a static-embedding model.
        epochs: passes over the pairs.
        batch_size: pairs a step at most; a pair's negatives are the texts of the others.
        learning_rate: Adam's at its highest; it rises over the first tenth of the training and falls to 0.
        scale: factor of the cosines in the loss (1 / temperature).
        teacher: a model whose cosines between a batch's texts are learnt, too, as ``places.resolve`` finds
            it; empty for none.
        teacher_weight: of that in the loss.
        seed: of the order of the pairs.
    """

    base: str = "static"
    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 0.01
    scale: float = 20.0
    teacher: str = ""
    teacher_weight: float = 30.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file of pairs is from, for the model card."""

    source: str
    licence: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How well an encoder finds the texts that answer queries, ranked by cosine among all texts.

    Attributes:
        reciprocal_rank: float64[n_queries], 1 / rank of the best relevant text; ties go to the lower row.
        recall: float64[n_queries], share of the relevant texts at the ranks up to ``DEPTH``.
    """

    reciprocal_rank: NDArray[np.float64]
    recall: NDArray[np.float64]

    @property
    def mrr(self) -> float:
        return float(self.reciprocal_rank.mean())

    @property
    def mean_recall(self) -> float:
        return float(self.recall.mean())


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained model.

    Attributes:
        folder: where it lies.
        pairs: how many it was trained on.
        held: how many were held out.
        base, trained: figures of both models on those; None without.
    """

    folder: Path
    pairs: int
    held: int
    base: Figures | None
    trained: Figures | None


def figures(
    queries: NDArray[np.float32], texts: NDArray[np.float32], relevant: Sequence[Sequence[int]]
) -> Figures:
    """Rank all texts for each query by inner product.

    Args:
        queries: float32[n_queries, dimension], of length 1.
        texts: float32[n_texts, dimension], of length 1.
        relevant: for each query the rows of the texts that answer it, at least one.
    """
    reciprocal, recall = [], []
    for query, rows in zip(queries, relevant, strict=True):
        # Products differ in their last bits with the shape of the matrix; rounded, equal texts tie.
        scores = np.round(texts @ query, 5)
        ranks = np.empty(len(scores), np.int64)
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        found = ranks[list(rows)]
        reciprocal.append(1 / found.min())
        recall.append((found <= DEPTH).mean())
    return Figures(np.array(reciprocal), np.array(recall))


def figures_on(encoder: Encoder, held: Sequence[Pair], others: Sequence[Pair] = ()) -> Figures:
    """Figures on the queries of ``held`` among every text of both; a query's texts are all its positives."""
    rows: dict[str, int] = {}
    for pair in (*held, *others):
        for text in (pair.positive, *pair.negatives):
            rows.setdefault(text, len(rows))
    relevant: dict[str, dict[int, None]] = {}
    for pair in held:
        relevant.setdefault(pair.query, {})[rows[pair.positive]] = None
    return figures(
        encoder.encode_queries(list(relevant)),
        encoder.encode(list(rows)),
        [list(one) for one in relevant.values()],
    )


def read_sources(listing: Path | None, paths: Sequence[Path]) -> list[Source]:
    """What files of pairs are from, by a JSON object of file name to ``source`` and ``licence``.

    A file that it does not name, and every file without a listing, is told by its name, its licence not
    stated.

    Raises:
        EpicqaError: the listing cannot be read or is no such object, or a file of pairs is not there.
    """
    found: Any = {}
    if listing is not None:
        try:
            found = json.loads(listing.read_bytes())
        except ValueError as error:
            raise EpicqaError(f"{listing}: not JSON ({error})") from None
        if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
            raise EpicqaError(f'{listing}: expected {{"file name": {{"source": ..., "licence": ...}}}}')
    sources = []
    for path in paths:
        told = found.get(path.name, {})
        names = str(told.get("source", path.name)), str(told.get("licence", "not stated"))
        sources.append(Source(*names, sha256_of(path)))
    return sources


def train_static(
    pairs: Sequence[Pair],
    out: Path,
    recipe: Recipe | None = None,
    *,
    held: Sequence[Pair] = (),
    sources: Sequence[Source] = (),
    command: str = "",
    threads: int = 1,
    progress: Progress | None = None,
) -> Trained:
    """Train, and write a sentence-transformers folder that ``--dense`` and ``load_encoder`` take.

    Multiple-negatives ranking loss (Henderson et al. 2017, "Efficient natural language response suggestion
    for Smart Reply", section 4.4): in a batch of queries and answers, the cross-entropy of each query's own
    answer among the answers of all and the negatives that the pairs bring. With a teacher, plus the mean
    square of what the cosines between all texts of the batch are off the teacher's.

    Beside ``out`` lies a folder with a checkpoint and the teacher's vectors until the model is whole:
    interrupted, the same call goes on and ends in the same bytes. Where ``out`` holds what the same call
    made, nothing is trained.

    Args:
        pairs: to train on.
        out: folder to make.
        recipe: how.
        held: pairs to measure base and trained model on.
        sources: for the model card, what the pairs are from.
        command: for the model card, what was typed.
        threads: of PyTorch; the weights are the same bytes for the same number.
        progress: told a step's name, how much is done, and of how much.

    Raises:
        EpicqaError: ``out`` holds something else, there are too few pairs, the base is no static-embedding
            model or cannot be loaded, or training has left the range of numbers.
    """
    recipe = recipe or Recipe()
    _check(pairs, recipe)
    base, place = _open_base(recipe.base)
    key = asdict(recipe) | {
        "method": _METHOD,
        "base": base.fingerprint,
        "training_pairs": fingerprint(pairs),
    }
    teacher = load_encoder(recipe.teacher) if recipe.teacher else None
    if teacher:
        key["teacher"] = teacher.fingerprint
    tell: Progress = progress or (lambda step, done, total: None)
    if not _is_made(out, key):
        work = out.with_name(f".{out.name}.training")
        with _torch_threads(threads):
            texts = _Texts(pairs, place)
            if teacher:
                texts.vectors = _taught(texts, teacher, work / "teacher", tell)
            state = _train(pairs, texts, recipe, place, work / _CHECKPOINT, digest_of(key), tell)
        _write(out, place, state, key)
        remove_tree(work)
    trained = _static_encoder(str(out), out)
    if held:
        tell("measuring", 0, None)
    result = Trained(
        folder=out,
        pairs=len(pairs),
        held=len(held),
        base=figures_on(base, held, pairs) if held else None,
        trained=figures_on(trained, held, pairs) if held else None,
    )
    card = _card(result, recipe, key, trained, sources, command)
    write_bytes(out / "README.md", card.encode())
    return result


def _check(pairs: Sequence[Pair], recipe: Recipe) -> None:
    queries = len({pair.query for pair in pairs})
    if queries < 2:
        raise EpicqaError(f"{queries} different queries to train on, expected two or more")
    for name, least in (("epochs", 1), ("batch_size", 2), ("seed", 0)):
        if getattr(recipe, name) < least:
            raise EpicqaError(f"{name} {getattr(recipe, name)}, expected {least} or more")
    for name in ("learning_rate", "scale", "teacher_weight"):
        if not 0 < getattr(recipe, name) < float("inf"):
            raise EpicqaError(f"{name} {getattr(recipe, name)}, expected a number above 0")


def _static_encoder(name: str, folder: Path) -> StaticEncoder:
    encoder = open_static(name, folder)
    if encoder is None:
        raise EpicqaError(f"base {name!r} is no static-embedding model, expected static or a folder of one")
    return encoder


def _open_base(name: str) -> tuple[StaticEncoder, Path]:
    """The base, and the folder of its weights and tokenizer."""
    folder = resolve(name)
    encoder = _static_encoder(name, folder)
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    return encoder, folder / modules[0]["path"]


def _table(place: Path) -> NDArray[np.float32]:
    """A static-embedding model's vectors, float32[tokens, dimension]."""
    from safetensors.numpy import load_file

    return load_file(place / "model.safetensors")["embedding.weight"].astype(np.float32)


def _is_made(out: Path, key: Mapping[str, Any]) -> bool:
    """Whether the folder holds the model of that key; it may hold nothing else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    try:
        found = json.loads((out / _RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        found = None
    if found != key:
        raise EpicqaError(f"{out}: holds something else than this makes, expected a new or an empty folder")
    return True


@contextmanager
def _torch_threads(threads: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(slots=True)
class _State:
    """A training after some steps: weights, Adam's two moments, and the log so far."""

    step: int
    weight: torch.Tensor
    mean: torch.Tensor
    square: torch.Tensor
    log: list[dict[str, float]]


def _train(
    pairs: Sequence[Pair],
    texts: _Texts,
    recipe: Recipe,
    place: Path,
    checkpoint: Path,
    key: str,
    tell: Progress,
) -> _State:
    """Train from the checkpoint, if it is of this training, else from the base, to the end."""
    import torch

    with quiet():
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.losses import MultipleNegativesRankingLoss
        from sentence_transformers.models import StaticEmbedding

    state = _read_checkpoint(checkpoint, key)
    if state is None:
        weight = torch.from_numpy(_table(place))
        state = _State(0, weight, torch.zeros_like(weight), torch.zeros_like(weight), [])
    module = StaticEmbedding(texts.tokenizer, embedding_weights=state.weight)
    model = SentenceTransformer(modules=[module], device="cpu")
    loss_of = MultipleNegativesRankingLoss(model, scale=recipe.scale)
    optimizer = torch.optim.Adam(module.parameters(), lr=recipe.learning_rate)
    if state.step:
        moments = {
            "step": torch.tensor(float(state.step)),
            "exp_avg": state.mean,
            "exp_avg_sq": state.square,
        }
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": {0: moments}, "param_groups": groups})
    total = recipe.epochs * len(pairs)
    step = seen = 0
    saved = time.monotonic()
    for epoch in range(recipe.epochs):
        for batch in batches(pairs, recipe.batch_size, np.random.default_rng([recipe.seed, epoch])):
            step += 1
            seen += len(batch)
            if step <= state.step:
                continue
            rate = recipe.learning_rate * _rate(seen / total)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            columns = texts.columns([pairs[position] for position in batch])
            embeddings = [model(texts.features(column))["sentence_embedding"] for column in columns]
            loss = loss_of.compute_loss_from_embeddings(embeddings, torch.empty(0))
            if texts.vectors is not None:
                loss = loss + recipe.teacher_weight * _apart(embeddings, texts.taught(columns))
            loss.backward()
            optimizer.step()
            value = float(loss.detach())
            if not np.isfinite(value):
                raise EpicqaError(f"step {step}: the loss is {value}, expected a lower learning rate to do")
            row = dict(zip(_COLUMNS, (step, epoch + 1, seen, rate, value), strict=True))
            state.log.append(row)
            tell("training", seen, total)
            if time.monotonic() - saved > _SAVE_SECONDS:
                _update(state, step, module, optimizer)
                _write_checkpoint(checkpoint, state, key)
                saved = time.monotonic()
    if not step:
        raise EpicqaError(
            "no two pairs differ in query and in positive, expected pairs that can be told apart"
        )
    _update(state, step, module, optimizer)
    return state


def _rate(done: float) -> float:
    """The learning rate's factor when that share of the pairs is seen."""
    return min(done / _WARM_UP, (1 - done) / (1 - _WARM_UP))


def batches(pairs: Sequence[Pair], size: int, generator: np.random.Generator) -> Iterator[list[int]]:
    """Pairs in random order, each at most once, in batches that hold neither a query nor a positive twice.

    A text that answers one query of a batch must not stand among another's negatives. A pair that does not
    fit goes to the end of the queue. What is left there in the end, many answers to few queries, would make
    steps of two or three pairs: batches below a quarter of the first one's size are left out.

    Yields:
        Positions in ``pairs``.
    """
    queue = deque(generator.permutation(len(pairs)).tolist())
    least = 2
    while queue:
        batch: list[int] = []
        texts: set[str] = set()
        for _ in range(min(len(queue), _LOOK * size)):
            position = queue.popleft()
            pair = pairs[position]
            if pair.query in texts or pair.positive in texts:
                queue.append(position)
                continue
            batch.append(position)
            texts |= {pair.query, pair.positive}
            if len(batch) == size:
                break
        if len(batch) >= least:
            yield batch
            least = max(least, -(-len(batch) // 4))


class _Texts:
    """Every text of the pairs once: as token ids, and as the teacher's vectors if there is one.

    It stands for a corpus where vectors are made, each text a sentence.
    """

    def __init__(self, pairs: Sequence[Pair], place: Path) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        self.tokenizer.no_padding()
        every = (text for pair in pairs for text in (pair.query, pair.positive, *pair.negatives))
        self.rows = {text: row for row, text in enumerate(dict.fromkeys(every))}
        self.texts = list(self.rows)
        self.n_sentences = len(self.texts)
        self.fingerprint = digest_of(self.texts)
        self.ids = [one.ids for one in self.tokenizer.encode_batch_fast(self.texts, add_special_tokens=False)]
        self.vectors: NDArray[np.float16] | None = None

    def iter_sentences(self, start: int, stop: int) -> Iterator[str]:
        return iter(self.texts[start:stop])

    def iter_titled(self, start: int, stop: int) -> Iterator[tuple[str | None, str]]:
        return ((None, text) for text in self.texts[start:stop])

    def columns(self, batch: Sequence[Pair]) -> list[list[int]]:
        """Rows of the queries, of the positives, and of the negatives of all, if there are any."""
        positives = [self.rows[pair.positive] for pair in batch]
        negatives = dict.fromkeys(self.rows[text] for pair in batch for text in pair.negatives)
        # Another query's answer is among the candidates already and would count twice.
        others = [row for row in negatives if row not in set(positives)]
        return [[self.rows[pair.query] for pair in batch], positives, *([others] if others else [])]

    def features(self, rows: Sequence[int]) -> dict[str, torch.Tensor]:
        """What the model takes."""
        import torch

        ids = [self.ids[row] for row in rows]
        starts = np.cumsum([0] + [len(one) for one in ids[:-1]])
        flat = [token for one in ids for token in one]
        return {"input_ids": torch.tensor(flat, dtype=torch.long), "offsets": torch.from_numpy(starts)}

    def taught(self, columns: Sequence[Sequence[int]]) -> torch.Tensor:
        """The teacher's vectors, float32[n, dimension], of all columns' texts in order."""
        import torch

        assert self.vectors is not None
        return torch.from_numpy(self.vectors[list(chain.from_iterable(columns))].astype(np.float32))


def _taught(texts: _Texts, teacher: Encoder, folder: Path, tell: Progress) -> NDArray[np.float16]:
    """The teacher's vectors of all texts, float16[n, dimension]; kept in chunks until all is done."""
    done = 0

    def told(more: int) -> None:
        nonlocal done
        done += more
        tell("asking the teacher", done, texts.n_sentences)

    chunks = encode_corpus(texts, teacher, folder, with_title=False, chunk=_CHUNK, progress=told)
    return np.concatenate([np.load(path, allow_pickle=False) for path in chunks])


def _apart(embeddings: Sequence[torch.Tensor], taught: torch.Tensor) -> torch.Tensor:
    """The mean square of what cosines between all texts are off the teacher's."""
    import torch

    ours, theirs = (torch.nn.functional.normalize(one) for one in (torch.cat(list(embeddings)), taught))
    return ((ours @ ours.T - theirs @ theirs.T) ** 2).mean()


def _update(state: _State, step: int, module: Any, optimizer: torch.optim.Optimizer) -> None:
    moments = optimizer.state[module.embedding.weight]
    state.step = step
    state.weight = module.embedding.weight.detach()
    state.mean, state.square = moments["exp_avg"], moments["exp_avg_sq"]


def _write_checkpoint(path: Path, state: _State, key: str) -> None:
    from safetensors.torch import save_file

    told = {"key": key, "step": str(state.step), "log": json.dumps(state.log)}
    tensors = {"weight": state.weight, "mean": state.mean, "square": state.square}
    with replacing(path) as temporary:
        save_file(tensors, temporary, told)


def _read_checkpoint(path: Path, key: str) -> _State | None:
    """The state in a checkpoint of that key; another's, or one that cannot be read, counts for nothing."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            told = file.metadata() or {}
            if told.get("key") != key:
                return None
            weight, mean, square = (file.get_tensor(name) for name in ("weight", "mean", "square"))
            return _State(int(told["step"]), weight, mean, square, json.loads(told["log"]))
    except (OSError, SafetensorError):
        return None


def _write(out: Path, place: Path, state: _State, key: Mapping[str, Any]) -> None:
    """The model's folder, whole or not at all, in the layout of the one that ships."""
    from safetensors.numpy import save

    with np.errstate(over="ignore"):
        table = state.weight.numpy().astype(np.float16)
    if not np.isfinite(table).all():
        raise EpicqaError("weights are out of float16's range, expected a lower learning rate to do")
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    remove_tree(temporary)
    try:
        (temporary / "training").mkdir(parents=True)
        write_bytes(temporary / "model.safetensors", save({"embedding.weight": table}))
        write_bytes(temporary / "tokenizer.json", (place / "tokenizer.json").read_bytes())
        for name in ("modules.json", "config_sentence_transformers.json"):
            write_bytes(temporary / name, (STATIC / name).read_bytes())
        write_bytes(temporary / _LOG, _csv(state.log).encode())
        write_bytes(temporary / _RECORD, (json.dumps(dict(key), indent=2) + "\n").encode())
        if out.is_dir():
            out.rmdir()
        temporary.rename(out)
        sync_folder(out.parent)
    finally:
        remove_tree(temporary)


def _cell(text: object) -> str:
    """A text that stays inside a Markdown table's cell."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _csv(rows: Sequence[Mapping[str, float]]) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows({**row, "learning_rate": f"{row['learning_rate']:.6g}"} for row in rows)
    return text.getvalue()


def _card(
    result: Trained,
    recipe: Recipe,
    key: Mapping[str, Any],
    trained: StaticEncoder,
    sources: Sequence[Source],
    command: str,
) -> str:
    data = [f"| {_cell(one.source)} | {_cell(one.licence)} | `{one.sha256}` |" for one in sources]
    measured = "Not measured: no pairs were held out."
    if result.base and result.trained:
        measured = _MEASURED.format(
            queries=f"{len(result.base.recall):,}",
            held=f"{result.held:,}",
            depth=DEPTH,
            base=f"{result.base.mrr:.3f} | {result.base.mean_recall:.3f}",
            trained=f"{result.trained.mrr:.3f} | {result.trained.mean_recall:.3f}",
        )
    weights = result.folder / "model.safetensors"
    unused = {"base", "teacher"} if recipe.teacher else {"base", "teacher", "teacher_weight"}
    numbers = {name: value for name, value in asdict(recipe).items() if name not in unused}
    return _CARD.format(
        tokens=f"{len(_table(result.folder)):,}",
        dimensions=trained.dimension,
        pairs=f"{result.pairs:,}",
        base=_cell(recipe.base),
        base_fingerprint=key["base"],
        teacher=f"{_cell(recipe.teacher)}, fingerprint `{key['teacher']}`" if recipe.teacher else "none",
        recipe=", ".join(f"{name} {value}" for name, value in numbers.items()),
        weights=sha256_of(weights),
        data="\n".join(data) if data else "| not stated | not stated | |",
        command=command.replace("`", "'") or "epicqa.models.train.static.train_static",
        measured=measured,
    )
