import pytest

from compositionality.reward import Shape, judge_response, reward
from compositionality.reward.verl_reward import compute_score
from compositionality.types import Reason, Verdict

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
