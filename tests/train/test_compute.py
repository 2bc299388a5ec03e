"""FLOPs of a run, by hand."""

import pytest

from compositionality.train.metrics import (
    COMPLETIONS,
    EVALUATED_TOKENS,
    FLOPS,
    PAPER_FLOPS,
    SAMPLED,
    SAMPLED_TOKENS,
    TRAINED,
    ComputeMeter,
    TokenCounts,
    full_flops,
    non_embedding_parameters,
    paper_flops,
)


def test_both_counts() -> None:
    """A model of 10 parameters samples 100 tokens, trains on 80, with a reference, and evaluates 40."""
    counts = TokenCounts(sampled=100, trained=80, reference=80, evaluated=40)
    assert paper_flops(10, counts) == 6 * 10 * 100
    assert full_flops(10, counts) == 10 * (2 * 100 + 6 * 80 + 2 * 80 + 2 * 40)


def test_embeddings_and_the_output_head_are_not_counted() -> None:
    shapes = {
        "model.embed_tokens.weight": (9, 4),
        "lm_head.weight": (9, 4),
        "model.norm.weight": (4,),
        "q.weight": (4, 2),
    }
    assert non_embedding_parameters(shapes) == 4 + 8


@pytest.mark.parametrize(("old", "reference", "passes"), [(False, False, 0), (True, False, 1), (True, True, 2)])
def test_a_meter_adds_up_and_goes_on(old: bool, reference: bool, passes: int) -> None:
    meter = ComputeMeter(10, old=old, reference=reference)
    first = meter.add({EVALUATED_TOKENS: 40})
    assert (first[FLOPS], first[PAPER_FLOPS], first[COMPLETIONS]) == (800, 0, 0)
    second = meter.add({"step": 1, SAMPLED: 12, SAMPLED_TOKENS: 100, TRAINED: 80})
    assert second[FLOPS] == 800 + 10 * (200 + 480 + passes * 160)
    assert second[PAPER_FLOPS] == 6000
    resumed = ComputeMeter(10, old=old, reference=reference)
    resumed.restore(second)
    row = {"step": 2, SAMPLED: 8, SAMPLED_TOKENS: 50, TRAINED: 50}
    assert resumed.add(row) == meter.add(row)
    assert meter.completions == 20
