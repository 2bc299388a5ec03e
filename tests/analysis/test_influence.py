"""The theory of influence on toy policies, where every expectation can be written out (T1 to T6 of the paper)."""

# ruff: noqa: N803, N806

import pytest
import torch
from torch import Tensor

from compositionality.analysis.influence import co_influence, influence
from compositionality.analysis.sketch import KINDS, Projection, ProjectionSettings
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


@pytest.mark.parametrize("samples", [4, 8, 32])
def test_t1_advantages_are_ratios_of_shares(samples: int) -> None:
    """With the population's deviation √((1−α)/α) and −√(α/(1−α)); the trainer's is √(S/(S−1)) of that larger."""
    for right in range(samples + 1):
        rewards_GS = torch.tensor([[1.0] * right + [0.0] * (samples - right)], dtype=torch.float64)
        found = grpo_advantage(rewards_GS)[0]
        if right in (0, samples):
            assert not found.any()
            continue
        share, scale = right / samples, ((samples - 1) / samples) ** 0.5
        assert float(found[0]) == pytest.approx(scale * ((1 - share) / share) ** 0.5, rel=1e-5)
        assert float(found[-1]) == pytest.approx(-scale * (share / (1 - share)) ** 0.5, rel=1e-5)


@pytest.mark.parametrize(("name", "advantage"), [("grpo", grpo_advantage), ("dr_grpo", dr_grpo_advantage)])
def test_t2_and_t4_the_closed_form_is_the_gradient(name: str, advantage) -> None:
    """mean over completions of advantage × score, by autograd: to machine precision."""
    toy, samples = Toy(), 8
    drawn_QS = torch.randint(COMPLETIONS, (QUERIES, samples))
    drawn_QS[:, :2] = torch.tensor([0, COMPLETIONS - 1])  # each query has both kinds
    correct_QS = toy.reward_QO.gather(1, drawn_QS).bool()
    advantage_QS = advantage(correct_QS.double())
    if name == "grpo":  # the trainer divides by the unbiased deviation, and by 1e-6 more
        deviation_Q1 = correct_QS.double().std(1, keepdim=True)
        advantage_QS = advantage_QS * (deviation_Q1 + 1e-6) / deviation_Q1 * (samples / (samples - 1)) ** 0.5
    closed_QF = update_from_scores(toy.scores(toy.theta_F)[torch.arange(QUERIES)[:, None], drawn_QS], correct_QS, name)
    for query in range(QUERIES):
        theta_F = toy.theta_F.clone().requires_grad_()
        objective = (advantage_QS[query] * toy.logp(theta_F)[query, drawn_QS[query]]).mean()
        (gradient_F,) = torch.autograd.grad(objective, theta_F)
        torch.testing.assert_close(closed_QF[query], gradient_F, rtol=1e-12, atol=1e-14)


def test_t3_influence_predicts_the_change_to_first_order() -> None:
    """Expected reward over all completions: halving the rate divides what the prediction misses by four."""
    toy = Toy()

    def objective(theta_F: Tensor) -> Tensor:
        return (toy.logp(theta_F).exp() * toy.reward_QO).sum(1)

    updates_QF = torch.autograd.functional.jacobian(objective, toy.theta_F)
    missed = []
    for rate in (0.02, 0.01, 0.005):
        predicted_Q = rate * influence(updates_QF)[0]
        before = objective(toy.theta_F).mean()
        after_Q = torch.stack([objective(toy.theta_F + rate * update_F).mean() for update_F in updates_QF])
        missed.append(float((after_Q - before - predicted_Q).abs().max()))
        assert missed[-1] < 0.2 * float(predicted_Q.abs().max())
    assert missed[0] / missed[1] == pytest.approx(4, rel=0.15)
    assert missed[1] / missed[2] == pytest.approx(4, rel=0.15)


def test_t5_the_kernel_is_the_tangent_kernel_between_errors_in_probability() -> None:
    """⟨∇log π, ∇log π⟩ = (e − π)ᵀ ⟨∇z, ∇z⟩ (e − π), the logits z of a small network."""
    network = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 4)).double()
    parameters = list(network.parameters())
    inputs_QX = torch.randn(2, 3, dtype=torch.float64)

    def gradient(value: Tensor) -> Tensor:
        return torch.cat([part.flatten() for part in torch.autograd.grad(value, parameters, retain_graph=True)])

    scores, slopes, errors = [], [], []
    for query, chosen in ((0, 1), (1, 3)):
        z_V = network(inputs_QX[query])
        scores.append(gradient(z_V.log_softmax(0)[chosen]))
        slopes.append(torch.stack([gradient(one) for one in z_V]))
        errors.append(torch.eye(4, dtype=torch.float64)[chosen] - z_V.softmax(0).detach())
    sandwich = errors[0] @ (slopes[0] @ slopes[1].T) @ errors[1]
    torch.testing.assert_close(scores[0] @ scores[1], sandwich, rtol=1e-10, atol=1e-12)


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
    with pytest.raises(UserError, match="the gradient of query 1 is not finite"):
        influence(updates_QF)
