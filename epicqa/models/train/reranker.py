"""Train a cross-encoder that reranks: a question and a passage in, one number out."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from epicqa.errors import EpicqaError
from epicqa.files import digest_of, remove_tree, replacing, sha256_of, sweep, write_bytes
from epicqa.models.places import fingerprint as model_fingerprint
from epicqa.models.places import resolve
from epicqa.models.quiet import quiet
from epicqa.models.train.losses import Loss, loss_of
from epicqa.models.train.pairs import Pair, fingerprint
from epicqa.models.train.reranker_card import CARD

if TYPE_CHECKING:
    import torch

Progress = Callable[[str, int, int | None], None]

WORK = "training"
"""The folder in a model's folder that holds its log, its curve, and what a resumed training needs."""

MINED = 3
"""Negatives to have ready for each that a step uses, so that epochs differ."""

HELD_OUT = 200
"""Held-out pairs to validate on at most."""

_KEY = "key.json"
_WEIGHT_DECAY = 0.01
_CLIP = 1.0
# Tokens of one pass through the network, padding included: what a CPU's cache and a GPU's memory like.
_TOKENS = {"cpu": 2048, "cuda": 32768}
# Steps that are timed to see how many fit a budget, and the share of it that they may plan to use.
_REHEARSED = 4
_PLANNED = 0.95
# Beyond this share of the budget the clock ends a training whose plan was too bold.
_OVERRUN = 1.1


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training came to.

    Attributes:
        folder: the model's.
        steps: made, of those planned.
        planned: steps that the learning rate's schedule was made for.
        seen: question-passage pairs gone through.
        seconds: of training and validation, over all its sittings.
        best_step: the step whose weights were kept.
        curve: (step, MRR) of each validation; the first is before training. Empty without held-out pairs.
    """

    folder: Path
    steps: int
    planned: int
    seen: int
    seconds: float
    best_step: int
    curve: tuple[tuple[int, float], ...]

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line."""
        told = [
            f"{self.folder}: step {self.best_step:,} of {self.steps:,}, {self.seen:,} question-passage pairs "
            f"in {self.seconds / 60:.1f} minutes"
        ]
        if self.steps < self.planned:
            told.append(f"the budget ended before the {self.planned:,} steps that were planned")
        if not self.curve:
            return [*told, "no pairs were held out: how good it is, is not known"]
        mrr = dict(self.curve)
        before, after = self.curve[0][1], mrr[self.best_step]
        told.append(f"MRR on held-out groups {after:.3f}, before training {before:.3f}")
        if after <= before:
            told.append("it is no better than before training: more or other pairs, or more time, are needed")
        elif self.curve[-1][1] < after:
            told.append(f"later steps were worse: {self.curve[-1][1]:.3f} at the end")
        return told


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What decides the weights, threads and machine aside."""

    base: str
    teacher: str | None
    negatives: int
    loss: Loss
    epochs: int
    max_steps: int | None
    budget_seconds: float | None
    batch: int
    max_length: int
    learning_rate: float
    warmup: float
    seed: int
    evaluations: int


@dataclass
class _State:
    """Where a training stands; with the weights and the optimizer's moments it is a checkpoint."""

    step: int = 0
    total: int = 0
    seen: int = 0
    seconds: float = 0.0
    best_step: int = 0
    best: float = -1.0
    loss: float = 0.0
    scaler: dict[str, Any] | None = None


def train_reranker(
    pairs: Sequence[Pair],
    out: Path,
    *,
    held_out: Sequence[Pair] = (),
    base: str = "minilm",
    negatives_per_query: int = 7,
    loss: Loss = "listwise",
    epochs: int = 1,
    max_steps: int | None = None,
    budget_seconds: float | None = None,
    batch: int = 16,
    max_length: int = 192,
    learning_rate: float = 5e-5,
    warmup: float = 0.1,
    seed: int = 1,
    threads: int | None = None,
    teacher: str | None = None,
    checkpoint_every: int = 25,
    evaluations: int = 8,
    notes: Sequence[str] = (),
    command: str = "",
    progress: Progress | None = None,
) -> Trained:
    """Train a cross-encoder with one logit and write it as a sentence-transformers ``CrossEncoder`` folder.

    The same call goes on where an interrupted one stopped, and comes to the same weights as one that was not
    interrupted, on the same machine and threads. A call after the end does nothing.

    Losses, for a query's positive p and negatives n with scores s (and a teacher's scores t):
    ``listwise``: -log softmax(s)[p], or the cross-entropy with softmax(t) (ListNet, Cao et al. 2007, section
    4); ``margin``: the mean of max(0, 1 - (s_p - s_n)), or of ((t_p - t_n) - (s_p - s_n))^2 (Margin-MSE,
    Hofstätter et al. 2020, section 3).

    Args:
        pairs: with negatives each, see ``negatives.with_negatives``; each epoch draws some of them.
        out: the folder.
        held_out: pairs whose positive is ranked among all its negatives to choose the best weights; without
            any, the last are kept.
        base: any encoder by a name that ``places.resolve`` knows.
        negatives_per_query: negatives in a step's list.
        loss: see above.
        epochs: passes over the pairs.
        max_steps: a limit on steps.
        budget_seconds: a limit on time: a few steps and one validation are timed, and as many steps planned
            as fit.
        batch: queries a step.
        max_length: tokens of question and passage together.
        learning_rate: at its peak.
        warmup: share of the steps over which it rises.
        seed: of weights that the base lacks, dropout, order and draws.
        threads: of PyTorch; None: all cores.
        teacher: a cross-encoder to learn the scores of.
        checkpoint_every: steps between two checkpoints; a kill loses those after the last.
        evaluations: validations on the way, evenly spaced, the last at the end.
        notes: lines on the data and their licences, for the model card.
        command: the command that makes the model, for the card.
        progress: told how far it is.

    Raises:
        EpicqaError: a setting out of range, a pair without negatives, a model that cannot be loaded, or a
            folder that holds something else.
    """
    recipe = _Recipe(
        base=base,
        teacher=teacher,
        negatives=negatives_per_query,
        loss=loss,
        epochs=epochs,
        max_steps=max_steps,
        budget_seconds=budget_seconds,
        batch=batch,
        max_length=max_length,
        learning_rate=learning_rate,
        warmup=warmup,
        seed=seed,
        evaluations=evaluations,
    )
    _check(recipe, pairs, held_out, checkpoint_every)
    folder = resolve(base)
    key = digest_of(
        {
            **asdict(recipe),
            "base": model_fingerprint(folder),
            "teacher": teacher and model_fingerprint(resolve(teacher, "cross-encoder")),
            "pairs": fingerprint(pairs),
            "held_out": fingerprint(held_out),
        }
    )
    _check_folder(out, key)
    work = out / WORK
    if (out / "config.json").is_file() and (work / "result.json").is_file():
        return _read_result(out, work)
    import torch
    from filelock import FileLock, Timeout

    before = torch.get_num_threads()
    torch.set_num_threads(threads or os.cpu_count() or 1)
    try:
        run = _Run(recipe, folder, pairs, held_out, work, progress)
        work.mkdir(parents=True, exist_ok=True)
        with FileLock(work / ".lock", timeout=0):
            sweep(work)
            write_bytes(work / _KEY, json.dumps({"key": key}).encode() + b"\n")
            run.go(checkpoint_every)
            return _finish(run, out, notes, command)
    except Timeout:
        raise EpicqaError(f"{out}: is being trained by another process; wait for it to end") from None
    finally:
        torch.set_num_threads(before)


def some_of(pairs: Sequence[Pair], most: int, seed: int) -> list[Pair]:
    """At most that many pairs, drawn by seed, in their order."""
    if len(pairs) <= most:
        return list(pairs)
    chosen = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
    return [pairs[place] for place in np.sort(chosen).tolist()]


def _check(recipe: _Recipe, pairs: Sequence[Pair], held_out: Sequence[Pair], checkpoint_every: int) -> None:
    if recipe.loss not in get_args(Loss):
        raise EpicqaError(f"unknown loss {recipe.loss!r}, expected one of {', '.join(get_args(Loss))}")
    least = {
        "negatives_per_query": (recipe.negatives, 1),
        "epochs": (recipe.epochs, 1),
        "max_steps": (1 if recipe.max_steps is None else recipe.max_steps, 1),
        "batch": (recipe.batch, 1),
        "max_length": (recipe.max_length, 8),
        "checkpoint_every": (checkpoint_every, 1),
        "evaluations": (recipe.evaluations, 1),
        "seed": (recipe.seed, 0),
    }
    for name, (value, low) in least.items():
        if value < low:
            raise EpicqaError(f"{name} is {value}, expected {low} or more")
    if not 0 < recipe.learning_rate < 1 or not 0 <= recipe.warmup < 1:
        raise EpicqaError(
            f"learning rate {recipe.learning_rate:g}, warm-up {recipe.warmup:g}, expected above 0 and from 0 "
            "on, both below 1"
        )
    if recipe.budget_seconds is not None and not recipe.budget_seconds > 0:
        raise EpicqaError(f"budget of {recipe.budget_seconds:g} seconds, expected more than 0")
    if not pairs:
        raise EpicqaError("no pairs to train on, expected one or more")
    for pair in (*pairs, *held_out):
        if not pair.negatives:
            raise EpicqaError(f"the pair of {pair.query[:60]!r} has no negatives, expected one or more")


def _check_folder(out: Path, key: str) -> None:
    """No other training's folder is touched, and none that is no training's."""
    path = out / WORK / _KEY
    if path.is_file():
        try:
            known = json.loads(path.read_bytes())["key"]
        except (ValueError, KeyError, TypeError):
            known = None
        if known != key:
            raise EpicqaError(
                f"{out}: holds a training with other pairs, models or settings, expected an empty folder, or "
                "the same command again to go on with it"
            )
    elif out.is_dir() and any(out.iterdir()):
        raise EpicqaError(f"{out}: not empty and no training of this kind, expected an empty folder")


class _Run:
    """A training under way: the network, its optimizer, and where it stands."""

    def __init__(
        self,
        recipe: _Recipe,
        base: Path,
        pairs: Sequence[Pair],
        held_out: Sequence[Pair],
        work: Path,
        progress: Progress | None,
    ) -> None:
        import torch

        self.recipe = recipe
        self.base = base
        self.pairs = pairs
        self.held_out = held_out
        self.work = work
        self.progress = progress
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.precision = _precision(self.device)
        self.state = _State()
        self.curve: list[tuple[int, float]] = []
        self.teacher: Any = None
        if recipe.teacher is not None:
            from epicqa.models.resolve import load_cross_encoder

            self.teacher = load_cross_encoder(recipe.teacher)
        self._load()

    def _load(self) -> None:
        """The network as it is before the first step."""
        import torch

        with quiet():
            from transformers import AutoModelForSequenceClassification, AutoTokenizer

            with quiet():
                torch.manual_seed(self.recipe.seed)
                try:
                    self.tokenizer: Any = AutoTokenizer.from_pretrained(str(self.base), local_files_only=True)
                    self.model: Any = AutoModelForSequenceClassification.from_pretrained(
                        str(self.base),
                        num_labels=1,
                        local_files_only=True,
                        trust_remote_code=False,
                        use_safetensors=True,
                        dtype=torch.float32,
                    )
                except Exception as error:  # whatever a foreign folder provokes in the library
                    line = next(iter(str(error).splitlines()), "") or type(error).__name__
                    raise EpicqaError(
                        f"{self.base}: cannot be trained ({line}), expected an encoder"
                    ) from None
        longest = getattr(self.model.config, "max_position_embeddings", self.recipe.max_length)
        self.tokenizer.model_max_length = min(
            self.recipe.max_length, longest, self.tokenizer.model_max_length
        )
        self.model.to(self.device)
        self.names, parameters = zip(*self.model.named_parameters(), strict=True)
        plain = [one for name, one in self.model.named_parameters() if _undecayed(name)]
        decayed = [one for name, one in self.model.named_parameters() if not _undecayed(name)]
        self.parameters: tuple[Any, ...] = parameters
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": _WEIGHT_DECAY},
                {"params": plain, "weight_decay": 0.0},
            ],
            lr=self.recipe.learning_rate,
        )
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.precision is torch.float16)

    def go(self, checkpoint_every: int) -> None:
        """Train to the end, from the last checkpoint if there is one."""
        if not self._restore():
            self._plan()
            self._checkpoint()
        state = self.state
        began = time.monotonic() - state.seconds
        sitting, seen = time.monotonic(), state.seen
        spacing = max(1, math.ceil(state.total / self.recipe.evaluations))
        limit = (self.recipe.budget_seconds or math.inf) * _OVERRUN
        while state.step < state.total and (state.seconds < limit or not state.step):
            rate = self._rate()
            state.loss = self._step(rate)
            state.seconds = time.monotonic() - began
            pace = (state.seen - seen) / max(1e-9, time.monotonic() - sitting)
            self._note(
                "log.jsonl",
                {
                    "step": state.step,
                    "loss": round(state.loss, 5),
                    "learning_rate": rate,
                    "pairs_a_second": round(pace, 1),
                    "seconds": round(state.seconds, 1),
                },
            )
            if self.progress:
                self.progress("training", state.step, state.total)
            last = state.step == state.total or state.seconds >= limit
            if last or state.step % spacing == 0:
                self._judge()
                state.seconds = time.monotonic() - began
            if last or state.step % checkpoint_every == 0:
                self._checkpoint()

    def _plan(self) -> None:
        """How many steps there will be; with a budget, as many as the pace of the first few lets fit."""
        recipe, state = self.recipe, self.state
        began = time.monotonic()
        for name in ("log.jsonl", "curve.jsonl"):
            (self.work / name).unlink(missing_ok=True)
        state.total = recipe.epochs * math.ceil(len(self.pairs) / recipe.batch)
        state.total = min(state.total, recipe.max_steps or state.total)
        self._judge()
        if recipe.budget_seconds is None:
            state.seconds = time.monotonic() - began
            return
        judged = time.monotonic() - began
        wanted = state.total
        times = []
        for _ in range(min(_REHEARSED, wanted)):
            start = time.monotonic()
            self._step(0.0)
            times.append(time.monotonic() - start)
        # The first step pays for what the others find ready.
        pace = float(np.mean(times[1:] or times))
        spent = time.monotonic() - began
        left = recipe.budget_seconds * _PLANNED - spent - recipe.evaluations * judged
        self.state = _State(seconds=spent, total=max(1, min(wanted, int(left / max(pace, 1e-9)))))
        # The rehearsal moved dropout's numbers and the optimizer; the weights stood still.
        self._load()

    def _rate(self) -> float:
        """Linear warm-up to the peak, then linear decay to zero."""
        step, total = self.state.step, self.state.total
        warm = max(1, round(self.recipe.warmup * total))
        rising = (step + 1) / warm
        falling = (total - step) / max(1, total - warm)
        return self.recipe.learning_rate * min(1.0, rising, falling)

    def _step(self, rate: float) -> float:
        import torch

        state = self.state
        lists = self._lists(state.step)
        queries = [query for query, texts in lists for _ in texts]
        texts = [text for _, texts in lists for text in texts]
        torch.manual_seed(self.recipe.seed * 1_000_003 + state.step)
        self.model.train()
        scores = self._ragged(self._logits(queries, texts), lists)
        taught = None
        if self.teacher is not None:
            taught = self._ragged(self._taught(queries, texts), lists)
        loss = loss_of(self.recipe.loss, scores, taught)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.parameters, _CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise EpicqaError(f"step {state.step + 1}: the loss is {value}, expected a lower learning rate")
        state.step += 1
        state.seen += len(texts)
        return value

    def _lists(self, step: int) -> list[tuple[str, list[str]]]:
        """Each query of a step with its positive and some of its negatives, drawn by seed and epoch."""
        recipe = self.recipe
        steps = math.ceil(len(self.pairs) / recipe.batch)
        epoch, within = divmod(step, steps)
        order = np.random.default_rng([recipe.seed, epoch]).permutation(len(self.pairs))
        lists = []
        for place in order[within * recipe.batch : (within + 1) * recipe.batch].tolist():
            pair = self.pairs[place]
            draw = np.random.default_rng([recipe.seed, epoch, place])
            count = min(recipe.negatives, len(pair.negatives))
            chosen = np.sort(draw.choice(len(pair.negatives), count, replace=False)).tolist()
            lists.append((pair.query, [pair.positive, *(pair.negatives[one] for one in chosen)]))
        return lists

    def _logits(self, queries: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        """float32[n]; pairs go through the network sorted by length, so that little is padding."""
        import torch

        encoded = self.tokenizer(list(queries), list(texts), truncation=True, verbose=False)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        parts = []
        for some in _slabs(order, lengths, _TOKENS[self.device]):
            chosen = {name: [values[place] for place in some] for name, values in encoded.items()}
            batch = self.tokenizer.pad(chosen, return_tensors="pt").to(self.device)
            with self._cast():
                parts.append(self.model(**batch).logits[:, 0].float())
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back.to(self.device)]

    def _cast(self) -> AbstractContextManager[Any]:
        import torch

        if self.precision is torch.float32:
            return nullcontext()
        return torch.autocast(self.device, self.precision)

    def _taught(self, queries: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        import torch

        with quiet():
            found = self.teacher.predict(
                list(zip(queries, texts, strict=True)),
                batch_size=32,
                show_progress_bar=False,
                activation_fn=torch.nn.Identity(),
                convert_to_tensor=True,
            )
        if found.shape not in {(len(texts),), (len(texts), 1)}:
            raise EpicqaError(f"teacher {self.recipe.teacher!r} gives no single score a pair, expected one")
        return found.reshape(-1).float().to(self.device)

    def _ragged(self, scores: torch.Tensor, lists: Sequence[tuple[str, list[str]]]) -> torch.Tensor:
        """float32[queries, longest list]; column 0 is the positive's, -inf where a list is shorter."""
        import torch

        parts = torch.split(scores, [len(texts) for _, texts in lists])
        return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=-math.inf)

    def _judge(self) -> None:
        """Validate, and keep the weights if they are the best so far."""
        state = self.state
        if self.held_out:
            mrr = self._mrr()
            self.curve.append((state.step, mrr))
            self._note("curve.jsonl", {"step": state.step, "mrr": mrr, "seconds": round(state.seconds, 1)})
            if mrr <= state.best or not state.step:
                return
            state.best, state.best_step = mrr, state.step
        elif state.step < state.total:
            return
        else:
            state.best_step = state.step
        from safetensors.torch import save

        write_bytes(self.work / "best.safetensors", save(self._weights()))

    def _mrr(self) -> float:
        """The mean of 1 / rank of the held-out positives, each among its negatives; ties count against it."""
        import torch

        self.model.eval()
        ranks = []
        with torch.inference_mode():
            for start in range(0, len(self.held_out), 64):
                some = self.held_out[start : start + 64]
                queries = [pair.query for pair in some for _ in range(1 + len(pair.negatives))]
                texts = [text for pair in some for text in (pair.positive, *pair.negatives)]
                scores = self._logits(queries, texts).cpu()
                for one in torch.split(scores, [1 + len(pair.negatives) for pair in some]):
                    ranks.append(1 + int((one[1:] >= one[0]).sum()))
                if self.progress:
                    self.progress("validating", min(start + 64, len(self.held_out)), len(self.held_out))
        return round(float(np.mean(1 / np.array(ranks))), 5)

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: one.detach().cpu().contiguous() for name, one in self.model.state_dict().items()}

    def _note(self, name: str, line: dict[str, Any]) -> None:
        with (self.work / name).open("ab") as log:
            log.write(json.dumps(line).encode() + b"\n")

    def _checkpoint(self) -> None:
        """Weights, moments and state in one file, under a temporary name first."""
        import torch
        from safetensors.torch import save_file

        tensors = {f"model.{name}": one for name, one in self._weights().items()}
        for name, one in zip(self.names, self.parameters, strict=True):
            for kind in ("exp_avg", "exp_avg_sq"):
                if kind in self.optimizer.state.get(one, {}):
                    tensors[f"{kind}.{name}"] = self.optimizer.state[one][kind].cpu().contiguous()
        assert all(isinstance(one, torch.Tensor) for one in tensors.values())
        self.state.scaler = self.scaler.state_dict() or None
        content = json.dumps({"state": asdict(self.state), "curve": self.curve})
        with replacing(self.work / "checkpoint.safetensors") as temporary:
            save_file(tensors, temporary, {"training": content})

    def _restore(self) -> bool:
        import torch
        from safetensors import SafetensorError, safe_open

        path = self.work / "checkpoint.safetensors"
        if not path.is_file():
            return False
        try:
            with safe_open(path, framework="pt") as kept:
                content = json.loads(kept.metadata()["training"])
                tensors = {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            raise EpicqaError(f"{path}: damaged ({error}), expected a checkpoint; remove it") from None
        self.model.load_state_dict(
            {name.removeprefix("model."): one for name, one in tensors.items() if name.startswith("model.")}
        )
        self.state = _State(**content["state"])
        self.curve = [(int(step), float(mrr)) for step, mrr in content["curve"]]
        for name, one in zip(self.names, self.parameters, strict=True):
            if f"exp_avg.{name}" in tensors:
                self.optimizer.state[one] = {
                    "step": torch.tensor(float(self.state.step)),
                    "exp_avg": tensors[f"exp_avg.{name}"].to(self.device),
                    "exp_avg_sq": tensors[f"exp_avg_sq.{name}"].to(self.device),
                }
        if self.state.scaler:
            self.scaler.load_state_dict(self.state.scaler)
        for name in ("log.jsonl", "curve.jsonl"):
            _cut(self.work / name, self.state.step)
        return True


def _undecayed(name: str) -> bool:
    return name.endswith("bias") or "layernorm" in name.lower()


def _precision(device: str) -> torch.dtype:
    """bfloat16 where the processor multiplies it, float16 on other GPUs, float32 on other CPUs."""
    import torch

    if device == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    known = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    return torch.bfloat16 if known else torch.float32


def _slabs(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Parts of an order by falling length, each within ``tokens`` when padded, or of one."""
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield list(order[start : start + size])
        start += size


def _cut(path: Path, step: int) -> None:
    """Drop the lines of steps that will be made again, and one that a kill cut short."""
    kept = []
    for line in path.read_bytes().splitlines() if path.is_file() else []:
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + b"\n")
        except (ValueError, KeyError, TypeError):
            continue
    write_bytes(path, b"".join(kept))


def _finish(run: _Run, out: Path, notes: Sequence[str], command: str) -> Trained:
    """Write the model's folder from the best weights; ``config.json``, which makes it one, comes last."""
    from safetensors.torch import load_file

    state = run.state
    run.model.load_state_dict(load_file(run.work / "best.safetensors"))
    made = run.work / "model"
    remove_tree(made)
    with quiet():
        run.model.half().cpu().save_pretrained(made)
        run.tokenizer.save_pretrained(made)
    config = json.loads((made / "config.json").read_bytes())
    config["sentence_transformers"] = {"activation_fn": "torch.nn.modules.linear.Identity"}
    trained = Trained(
        out, state.step, state.total, state.seen, state.seconds, state.best_step, tuple(run.curve)
    )
    card = _card(run, trained, sha256_of(made / "model.safetensors"), notes, command)
    write_bytes(out / "README.md", card.encode())
    for path in sorted(made.iterdir()):
        if path.name != "config.json":
            path.replace(out / path.name)
    write_bytes(
        run.work / "result.json",
        json.dumps(asdict(trained) | {"folder": None}).encode() + b"\n",
    )
    write_bytes(out / "config.json", json.dumps(config, indent=2).encode() + b"\n")
    remove_tree(made)
    for name in ("checkpoint.safetensors", "best.safetensors"):
        (run.work / name).unlink(missing_ok=True)
    return trained


def _read_result(out: Path, work: Path) -> Trained:
    try:
        found = json.loads((work / "result.json").read_bytes())
        curve = tuple((int(step), float(mrr)) for step, mrr in found.pop("curve"))
        return Trained(**{**found, "folder": out, "curve": curve})
    except (ValueError, KeyError, TypeError):
        raise EpicqaError(f"{work / 'result.json'}: damaged, expected what the training wrote") from None


def _card(run: _Run, trained: Trained, weights: str, notes: Sequence[str], command: str) -> str:
    recipe = run.recipe
    figures = ["No pairs were held out."]
    if trained.curve:
        negatives = np.mean([len(pair.negatives) for pair in run.held_out])
        figures = [
            f"MRR of {len(run.held_out):,} held-out positives, each among {negatives:.0f} hard negatives in "
            f"the mean; the weights of step {trained.best_step:,} were kept:",
            "",
            "| step | MRR |",
            "|---|---|",
            *(f"| {step:,} | {mrr:.4f} |" for step, mrr in trained.curve),
        ]
    precision = str(run.precision).removeprefix("torch.")
    return CARD.format(
        name=trained.folder.resolve().name,
        base=_shown(recipe.base),
        license="license: apache-2.0\n" if recipe.base == "minilm" else "",
        base_fingerprint=model_fingerprint(run.base),
        command="\n```\n{}\n```\n".format(command.replace("`", "'")) if command else "",
        teacher=recipe.teacher or "none",
        loss=recipe.loss,
        pairs=len(run.pairs),
        held=len(run.held_out),
        negatives=recipe.negatives,
        pairs_fingerprint=fingerprint(run.pairs),
        steps=trained.steps,
        planned=trained.planned,
        batch=recipe.batch,
        seen=trained.seen,
        minutes=trained.seconds / 60,
        machine=f"{'a GPU' if run.device == 'cuda' else f'{_threads()} CPU thread(s)'}, {precision}",
        learning_rate=recipe.learning_rate,
        warmup=recipe.warmup,
        decay=_WEIGHT_DECAY,
        clip=_CLIP,
        max_length=recipe.max_length,
        seed=recipe.seed,
        weights=weights,
        notes="\n".join(f"- {' '.join(note.split())}" for note in notes) or "The caller named none.",
        figures="\n".join(figures),
    )


def _shown(base: str) -> str:
    return "sentence-transformers/all-MiniLM-L6-v2" if base == "minilm" else base


def _threads() -> int:
    import torch

    return torch.get_num_threads()
