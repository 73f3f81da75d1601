"""A model in training and its optimizer."""

from __future__ import annotations

import pytest
import torch

from epicqa.models.train.learner import CLIP, WEIGHT_DECAY, Learner


class Toy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.LayerNorm = torch.nn.LayerNorm(3)
        self.out = torch.nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.out(self.LayerNorm(x))
        return found


def loss_of(learner: Learner) -> torch.Tensor:
    x = torch.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, -1.0]], device=learner.device)
    loss: torch.Tensor = ((learner.model(x) - 50) ** 2).mean()
    return loss


def test_biases_and_layer_norms_are_not_decayed() -> None:
    learner = Learner(Toy(), 0.01)
    names = {one: name for name, one in learner.model.named_parameters()}
    decays = {
        names[one]: group["weight_decay"]
        for group in learner.optimizer.param_groups
        for one in group["params"]
    }
    assert decays == {
        "LayerNorm.weight": 0.0,
        "LayerNorm.bias": 0.0,
        "out.weight": WEIGHT_DECAY,
        "out.bias": 0.0,
    }


def test_a_step_goes_down_with_the_gradient_clipped() -> None:
    learner = Learner(Toy(), 0.01)
    before = loss_of(learner).item()
    assert learner.learn(loss_of(learner), 0.05) == pytest.approx(before)
    gradient = torch.cat([one.grad.flatten() for one in learner.model.parameters()])
    assert gradient.norm().item() == pytest.approx(CLIP, abs=1e-4)
    assert {group["lr"] for group in learner.optimizer.param_groups} == {0.05}
    assert loss_of(learner).item() < before


def test_put_back_goes_on_as_if_nothing_had_happened() -> None:
    torch.manual_seed(1)
    one, other = Learner(Toy(), 0.01), Learner(Toy(), 0.01)
    for _ in range(3):
        one.learn(loss_of(one), 0.01)
    kept = {name: tensor.clone() for name, tensor in one.tensors().items()}
    assert set(kept) == {
        f"{kind}.{name}" for kind in ("model", "exp_avg", "exp_avg_sq", "step") for name in one.weights()
    }
    other.put_back(kept, 3)
    for learner in (one, other):
        learner.learn(loss_of(learner), 0.02)
    assert all(torch.equal(tensor, other.tensors()[name]) for name, tensor in one.tensors().items())


def test_parts_that_some_steps_do_not_move_go_on_as_well() -> None:
    torch.manual_seed(1)
    one, other = (Learner(torch.nn.ModuleDict({"a": Toy(), "b": Toy()}), 0.01) for _ in range(2))

    def step(learner: Learner, *parts: str) -> None:
        x = torch.tensor([[1.0, 2.0, 4.0]], device=learner.device)
        learner.learn(sum(((learner.model[part](x) - 50) ** 2).mean() for part in parts), 0.01)

    for parts in ("a", "ab", "a"):
        step(one, *parts)
    other.put_back({name: tensor.clone() for name, tensor in one.tensors().items()}, 3)
    for learner in (one, other):
        step(learner, "a", "b")
    assert all(torch.equal(tensor, other.tensors()[name]) for name, tensor in one.tensors().items())


def test_dropout_draws_by_seed_and_step() -> None:
    learner = Learner(torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(64, 1)), 0.01)
    learner.model.eval()
    x = torch.ones(1, 64, device=learner.device)
    found = []
    for seed, step in ((1, 5), (1, 5), (1, 6), (2, 5)):
        learner.ready(seed, step)
        found.append(learner.model(x).item())
    assert found[0] == found[1] and len(set(found)) == 3
