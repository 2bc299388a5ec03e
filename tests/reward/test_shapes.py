"""The shapes of rewards; nothing in the rewards of a control tells right answers from wrong ones."""

from collections import Counter
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositionality.reward.judge import judge_response
from compositionality.reward.shapes import Control, Shape, replace_rewards, reward, shape_of
from compositionality.reward.verl_reward import compute_score
from compositionality.types import Completion, PromptGroup, Reason, Verdict

SOURCE, GOLD = "string-trained-level2", '{"ref_output": "abc"}'


@pytest.mark.parametrize(
    ("reason", "binary", "paper", "form"),
    [
        ("correct", 1, 1, 1),
        ("wrong", 0, 0, 1),
        ("illegal", 0, 0, 1),
        ("no_answer", 0, -1, 0),
        ("malformed", 0, -1, 0),
        ("overlong", 0, -1, 0),
        ("error", None, None, None),
    ],
)
def test_reward_is_a_function_of_the_verdict(reason, binary, paper, form):
    verdict = Verdict(1.0 if reason == "correct" else 0.0, Reason(reason))
    assert reward(verdict, Shape.BINARY) == binary
    assert reward(verdict, "paper") == paper
    assert reward(verdict, "format") == form


def test_unknown_shape_is_refused():
    with pytest.raises(ValueError, match="shape"):
        reward(Verdict(1.0, Reason.CORRECT), "shape")


def test_a_cut_answer_is_overlong_even_if_it_is_right():
    assert judge_response(SOURCE, '{"output": "abc"}', GOLD, "stop").reason is Reason.CORRECT
    assert judge_response(SOURCE, '{"output": "abc"}', GOLD, "length").reason is Reason.OVERLONG


def test_p05_a_failing_judge_is_an_error_for_verl_too():
    score = compute_score(SOURCE, '{"output": "abc"}', "no json")
    assert (score["score"], score["acc"], score["error"]) == (0.0, 0.0, 1.0)


def test_verl_gets_the_same_keys_for_every_answer():
    right = compute_score(SOURCE, '{"output": "abc"}', GOLD, extra_info={"index": 0}, shape="paper", num_turns=1)
    missing = compute_score(SOURCE, "I do not know", GOLD, shape="paper")
    assert right.keys() == missing.keys()
    assert (right["score"], right["acc"], missing["score"], missing["no_answer"]) == (1.0, 1.0, -1.0, 1.0)


PAPER = {Reason.CORRECT: 1.0, Reason.WRONG: 0.0, Reason.NO_ANSWER: -1.0, Reason.ERROR: None}
STEPS = st.lists(st.lists(st.sampled_from([*PAPER]), min_size=4, max_size=4), min_size=1, max_size=8)


def step_of(reasons: list[list[Reason]]) -> list[PromptGroup]:
    empty = Completion("", 0, "stop", [], [])
    return [
        PromptGroup(
            place, [1], [empty] * len(group), [PAPER[one] for one in group], [one is Reason.CORRECT for one in group]
        )
        for place, group in enumerate(reasons)
    ]


def rewards(groups: list[PromptGroup]) -> list[float | None]:
    return [value for group in groups for value in group.rewards]


@given(STEPS, st.integers(0, 9), st.sampled_from(Control))
def test_a_control_touches_rewards_alone_and_repeats(reasons, seed, control):
    before = step_of(reasons)
    after, again = deepcopy(before), deepcopy(before)
    replace_rewards(control, after, (1, seed))
    replace_rewards(control, again, (1, seed))
    assert after == again
    assert [group.correct for group in after] == [group.correct for group in before]
    failed = [value is None for value in rewards(before)]
    assert [value is None for value in rewards(after)] == failed


@given(STEPS, st.integers(0, 9))
def test_shuffling_keeps_the_multiset_of_rewards(reasons, seed):
    before = step_of(reasons)
    after = deepcopy(before)
    replace_rewards("shuffled", after, (seed,))
    assert Counter(rewards(after)) == Counter(rewards(before))


@given(STEPS, st.integers(0, 9), st.randoms(use_true_random=False))
def test_random_rewards_depend_on_the_number_of_right_answers_alone(reasons, seed, order):
    """Whichever answers are right, the rewards are the same."""
    flat = [one for group in reasons for one in group if one is not Reason.ERROR]
    order.shuffle(flat)
    other = iter(flat)
    moved = [[one if one is Reason.ERROR else next(other) for one in group] for group in reasons]
    ours, theirs = step_of(reasons), step_of(moved)
    replace_rewards("random", ours, (seed,))
    replace_rewards("random", theirs, (seed,))
    assert rewards(ours) == rewards(theirs)
    assert set(rewards(ours)) <= {0.0, 1.0, None}


@pytest.mark.parametrize(("control", "spread"), [("shuffled", 0.0), ("random", 0.01)])
def test_the_mean_is_the_success_rate_and_right_answers_get_no_more(control, spread):
    reasons = [
        [Reason.CORRECT if (16 * row + place) % 4 == 0 else Reason.WRONG for place in range(16)] for row in range(64)
    ]
    means, gaps = [], []
    for seed in range(200):
        groups = step_of(reasons)
        replace_rewards(control, groups, (seed,))
        got, right = np.array(rewards(groups)), np.array([one for group in groups for one in group.correct])
        means.append(got.mean())
        gaps.append(got[right].mean() - got[~right].mean())
    assert np.mean(means) == pytest.approx(0.25, abs=max(spread, 1e-12))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(len(gaps))


def test_the_format_control_rewards_right_and_wrong_alike():
    shape = shape_of("format", "paper")
    given = {reason: reward(Verdict(0.0, reason), shape) for reason in PAPER}
    assert given == {Reason.CORRECT: 1, Reason.WRONG: 1, Reason.NO_ANSWER: 0, Reason.ERROR: None}
    assert [shape_of(control, "paper") for control in ("none", "shuffled", "random")] == ["paper"] * 3


@pytest.mark.parametrize(
    ("reasons", "by_correctness", "by_reward"),
    [
        ([Reason.CORRECT, Reason.WRONG], True, False),
        ([Reason.WRONG, Reason.NO_ANSWER], False, True),
        ([Reason.WRONG, Reason.WRONG], False, False),
    ],
)
def test_which_group_has_signal_for_the_format_control(reasons, by_correctness, by_reward):
    (group,) = step_of([reasons])
    group.rewards = [reward(Verdict(0.0, reason), "format") for reason in reasons]
    assert (group.has_signal(), group.has_signal(by_reward=True)) == (by_correctness, by_reward)
    group.rewards[0] = None  # the judge failed: the group is in no update
    assert not group.has_signal()
    assert not group.has_signal(by_reward=True)
