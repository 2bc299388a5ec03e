"""The closed form of an update on a toy policy (T2, T4 of the paper), what a sketch keeps (T6), the tables."""

# ruff: noqa: N803, N806

import pytest
import torch
from torch import Tensor

from compositionality.analysis.influence import KINDS, Projection, ProjectionSettings, co_influence, influence
from compositionality.errors import UserError
from compositionality.train.grpo import dr_grpo_advantage, grpo_advantage

QUERIES, COMPLETIONS, FEATURES = 3, 5, 4


@pytest.fixture(autouse=True)
def double_precision() -> None:
    torch.manual_seed(0)


class Toy:
    """log π(o | q) = log softmax over completions of θ · x(q, o); reward 1 for some completions."""

    def __init__(self) -> None:
        self.x_QOF = torch.randn(QUERIES, COMPLETIONS, FEATURES, dtype=torch.float64)
        self.reward_QO = (torch.arange(COMPLETIONS) < 2).double().expand(QUERIES, -1)
        self.theta_F = torch.randn(FEATURES, dtype=torch.float64) * 0.3

    def logp(self, theta_F: Tensor) -> Tensor:
        return torch.einsum("qof,f->qo", self.x_QOF, theta_F).log_softmax(1)

    def scores(self, theta_F: Tensor) -> Tensor:
        """∇ log π for each completion (Q, O, F)."""
        mean_QF = torch.einsum("qo,qof->qf", self.logp(theta_F).exp(), self.x_QOF)
        return self.x_QOF - mean_QF[:, None]


def update_from_scores(scores_QSF: Tensor, correct_QS: Tensor, advantage: str) -> Tensor:
    """The closed form of u(q) (Q, F): √(α(1 − α)), or its square, times the difference of mean scores."""
    weight_QS, samples = correct_QS.to(scores_QSF.dtype), correct_QS.shape[1]
    count_Q = weight_QS.sum(1)
    right_QF = torch.einsum("qs,qsf->qf", weight_QS, scores_QSF) / count_Q[:, None]
    wrong_QF = torch.einsum("qs,qsf->qf", 1 - weight_QS, scores_QSF) / (samples - count_Q)[:, None]
    spread_Q = count_Q / samples * (1 - count_Q / samples)
    return (spread_Q.sqrt() if advantage == "grpo" else spread_Q)[:, None] * (right_QF - wrong_QF)


@pytest.mark.parametrize(("name", "advantage"), [("grpo", grpo_advantage), ("dr_grpo", dr_grpo_advantage)])
def test_t2_and_t4_the_closed_form_is_the_gradient(name: str, advantage) -> None:
    """mean over completions of advantage × score, by autograd: to machine precision."""
    toy, samples = Toy(), 8
    drawn_QS = torch.randint(COMPLETIONS, (QUERIES, samples))
    drawn_QS[:, :2] = torch.tensor([0, COMPLETIONS - 1])  # each query has both kinds
    correct_QS = toy.reward_QO.gather(1, drawn_QS).bool()
    advantage_QS = advantage(correct_QS.double(), torch.ones_like(drawn_QS))
    if name == "grpo":  # the trainer divides by the unbiased deviation, and by 1e-6 more
        deviation_Q1 = correct_QS.double().std(1, keepdim=True)
        advantage_QS = advantage_QS * (deviation_Q1 + 1e-6) / deviation_Q1 * (samples / (samples - 1)) ** 0.5
    closed_QF = update_from_scores(toy.scores(toy.theta_F)[torch.arange(QUERIES)[:, None], drawn_QS], correct_QS, name)
    for query in range(QUERIES):
        theta_F = toy.theta_F.clone().requires_grad_()
        objective = (advantage_QS[query] * toy.logp(theta_F)[query, drawn_QS[query]]).mean()
        (gradient_F,) = torch.autograd.grad(objective, theta_F)
        torch.testing.assert_close(closed_QF[query], gradient_F, rtol=1e-12, atol=1e-14)


def some_gradients(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    common = {"model.layers.0.self_attn.q_proj.weight": (48, 32), "model.layers.0.mlp.up_proj.weight": (64, 32)}
    shared = torch.Generator().manual_seed(99)
    return {
        name: torch.randn(shape, generator=generator) + torch.randn(shape, generator=shared)
        for name, shape in common.items()
    }


@pytest.mark.parametrize(("size", "most"), [(256, 0.10), (1024, 0.05), (4096, 0.025)])
def test_t6_a_sketch_keeps_inner_products(size: int, most: float) -> None:
    """Error of ⟨u, v⟩ by the norms: about 1/√size for any two vectors; the mean over seeds is none."""
    exact = Projection(ProjectionSettings())
    u, v = some_gradients(1), some_gradients(2)
    truth = float(exact(u) @ exact(v))
    scale = float(exact(u).norm() * exact(v).norm())
    sketches = [Projection(ProjectionSettings("sketch", size, seed=seed)) for seed in range(20)]
    errors = torch.tensor([float(one(u) @ one(v)) - truth for one in sketches]) / scale
    assert float(errors.square().mean().sqrt()) < most
    assert abs(float(errors.mean())) < 3 * float(errors.std()) / 20**0.5


def test_a_sketch_is_a_function_of_its_seed() -> None:
    for kind in KINDS:
        one, other = (Projection(ProjectionSettings(kind, 256, seed=3))(some_gradients(1)) for _ in range(2))
        assert torch.equal(one, other)
    assert not torch.equal(
        *(Projection(ProjectionSettings("sketch", 256, seed=seed))(some_gradients(1)) for seed in (3, 4))
    )
    with pytest.raises(UserError, match=r"projection\.kind=lora: the model has no weights self_attn"):
        Projection(ProjectionSettings("lora"))({"lm_head.weight": torch.ones(2, 2)})


def test_adapters_keep_the_products_of_attention_gradients() -> None:
    """⟨G Aᵀ, H Aᵀ⟩ with E[AᵀA] = 1: unbiased over seeds."""
    name = "model.layers.0.self_attn.q_proj.weight"
    u, v = some_gradients(1), some_gradients(2)
    truth = float((u[name] * v[name]).sum())
    found = []
    for seed in range(40):
        adapter = Projection(ProjectionSettings("lora", 4096, rank=16, seed=seed))
        found.append(float(adapter(u) @ adapter(v)))
    values = torch.tensor(found)
    assert abs(float(values.mean()) - truth) < 3 * float(values.std()) / 40**0.5


def test_tables() -> None:
    updates_QF = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    everywhere_Q, others_Q = influence(updates_QF)
    assert everywhere_Q.tolist() == pytest.approx([4 / 3, 4 / 3, 4.0])
    assert others_Q.tolist() == pytest.approx([1.5, 0.0, 1.5])
    names, means = co_influence(updates_QF, ["b", "a", "b"])
    assert names == ["a", "b"]
    assert means.isnan()[0, 0]
    assert means[1, 1] == 3
    assert means[0, 1] == 0


def test_gradients_that_are_not_finite_are_named() -> None:
    updates_QF = torch.tensor([[1.0], [float("nan")]])
    with pytest.raises(UserError, match="query 1: its gradient is not finite"):
        influence(updates_QF)
