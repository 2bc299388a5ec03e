"""Muon beside ``torch.optim.Muon``, and in pretraining."""

from copy import deepcopy

import pytest
import torch
from ranks import on_ranks
from torch import nn

from compositionality.train.dist import start_processes
from compositionality.train.muon import LEARNING_RATE_RATIO, Muon, orthogonalised, split_parameters
from compositionality.train.settings import MeshSettings, OptimSettings


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens, self.wide, self.tall = nn.Embedding(5, 8), nn.Linear(8, 24, bias=False), nn.Linear(24, 8)
        self.lm_head = nn.Linear(8, 5, bias=False)


@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24)])
def test_singular_values_come_near_1(shape: tuple[int, int]) -> None:
    matrices = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    singular = torch.linalg.svdvals(orthogonalised(matrices))
    assert singular.min() > 0.5
    assert singular.max() < 1.3


def test_hidden_matrices_alone_are_muons() -> None:
    hidden, others = split_parameters(Layers())
    assert [tuple(one.shape) for one in hidden] == [(24, 8), (8, 24)]
    assert [tuple(one.shape) for one in others] == [(5, 8), (8,), (5, 8)]


def test_updates_are_torchs_muon_and_adamw() -> None:
    torch.manual_seed(0)
    ours, theirs = Layers(), Layers()
    theirs.load_state_dict(ours.state_dict())
    settings = OptimSettings(lr=1e-3, weight_decay=0.1)
    hidden, others = split_parameters(theirs)
    mine = Muon(ours, settings)
    adamw = torch.optim.AdamW(others, lr=1e-3, betas=(settings.beta1, settings.beta2), weight_decay=0.1)
    muon = torch.optim.Muon(hidden, lr=LEARNING_RATE_RATIO * 1e-3, weight_decay=0.1)
    for _ in range(3):
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        mine.step()
        adamw.step()
        muon.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=3e-4)  # torch's iteration is in bfloat16


def updated() -> list[torch.Tensor]:
    """Weights after two updates, with as many processes as there are; their three square matrices do not divide."""
    mesh = start_processes(MeshSettings(shard=False))
    torch.manual_seed(0)
    model = nn.ModuleList([*(nn.Linear(8, 8, bias=False) for _ in range(3)), nn.Linear(8, 24)])
    optimizer = Muon(model, OptimSettings(lr=1e-2), mesh["data"].get_group() if mesh is not None else None)
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def test_processes_share_the_matrices() -> None:
    for one, other in zip(updated(), on_ranks(2, updated), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_p07_a_state_that_was_saved_is_loaded() -> None:
    def optimizer() -> tuple[nn.Module, Muon]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
        return model, Muon(model, OptimSettings(lr=1e-2))

    def update(model: nn.Module, muon: Muon) -> None:
        muon.zero_grad()
        model(torch.ones(2, 6)).square().sum().backward()
        muon.step()

    model, muon = optimizer()
    update(model, muon)
    other, loaded = optimizer()
    other.load_state_dict(model.state_dict())
    loaded.load_state_dict(deepcopy(muon.state_dict()))
    update(model, muon)
    update(other, loaded)
    assert all(map(torch.equal, model.parameters(), other.parameters()))
