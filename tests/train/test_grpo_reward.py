"""Our reward manager is the one that verl loads (P12); verdicts become rewards; a judge that fails is no zero (P5)."""

import asyncio
import json
import threading

import numpy as np
import pytest
import torch
from own_rows import OWN
from sft_assets import make_model
from test_grpo_config import composed

from compositionality.reward.pool import JudgeInput
from compositionality.types import Reason

pytestmark = pytest.mark.full

LIMIT = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("reward") / "model")


@pytest.fixture(scope="module")
def tokenizer(model):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model)


def manager(model, tokenizer, shape="paper", seconds=5, *more):
    """Loaded exactly as verl's reward workers do."""
    from verl.trainer.ppo.reward import load_reward_manager

    config, _ = composed(
        "run.device=cpu", f"rollout.max_tokens={LIMIT}", f"reward.shape={shape}", f"reward.judge_seconds={seconds}",
        *more, model=model,
    )  # fmt: skip
    return load_reward_manager(config, tokenizer)


def one(tokenizer, text, *, eos=True, data_source="string-trained-level2"):
    from verl import DataProto

    ids = tokenizer(text, add_special_tokens=False)["input_ids"] + ([tokenizer.eos_token_id] if eos else [])
    batch = {
        "prompts": torch.zeros(1, 3, dtype=torch.long),
        "responses": torch.tensor([ids]),
        "attention_mask": torch.ones(1, 3 + len(ids), dtype=torch.long),
    }
    truth = json.dumps({"ref_output": "abc", "style": "compact"})
    rows = {"data_source": data_source, "reward_model": {"style": "rule", "ground_truth": truth}, "extra_info": {}}
    return DataProto.from_dict(tensors=batch, non_tensors={k: np.array([v], dtype=object) for k, v in rows.items()})


def run(loaded, data):
    return asyncio.run(loaded.run_single(data))


@pytest.mark.parametrize(
    ("text", "paper", "binary", "reason"), [("x=abc", 1, 1, None), ("x=ab", 0, 0, "wrong"), ("abc", -1, 0, "no_answer")]
)
def test_p12_the_loaded_manager_is_ours_and_verdicts_become_rewards(model, tokenizer, text, paper, binary, reason):
    from compositionality.train.verl.reward_manager import VerdictRewardManager

    for shape, expected in (("paper", paper), ("binary", binary)):
        loaded = manager(model, tokenizer, shape)
        assert type(loaded) is VerdictRewardManager
        found = run(loaded, one(tokenizer, text))
        assert found["reward_score"] == expected
        numbers = found["reward_extra_info"]
        assert numbers["acc"] == (reason is None)
        assert all(type(value) is float for value in numbers.values())
        assert [key for key in ("wrong", "no_answer", "overlong", "malformed") if numbers[key]] == [reason] * bool(
            reason
        )


def test_a_response_that_fills_the_limit_without_eos_is_overlong(model, tokenizer):
    loaded = manager(model, tokenizer)
    filled = "a" * (LIMIT - 4) + "=abc"
    assert len(tokenizer(filled, add_special_tokens=False)["input_ids"]) == LIMIT
    cut = run(loaded, one(tokenizer, filled, eos=False))
    assert (cut["reward_score"], cut["reward_extra_info"]["overlong"]) == (-1, 1)
    ended = run(loaded, one(tokenizer, filled[1:], eos=True))  # as long as the limit, with its EOS
    assert (ended["reward_score"], ended["reward_extra_info"]["overlong"]) == (1, 0)


def test_p05_a_failing_or_hanging_judge_is_no_zero(model, tokenizer, monkeypatch):
    from compositionality.train.verl import reward_manager
    from compositionality.types import Verdict

    loaded = manager(model, tokenizer, seconds=0.05)
    monkeypatch.setattr(reward_manager, "judge_response", lambda *_, **__: Verdict(0.0, Reason.ERROR))
    with pytest.raises(reward_manager.JudgeFailedError, match="string-trained-level2: no verdict"):
        run(loaded, one(tokenizer, "x=abc"))
    over = threading.Event()
    monkeypatch.setattr(reward_manager, "judge_response", lambda *_, **__: over.wait())

    async def judged():
        try:
            await loaded.run_single(one(tokenizer, "x=abc"))
        finally:
            over.set()  # asyncio.run waits for the judge's thread

    with pytest.raises(reward_manager.JudgeFailedError):
        asyncio.run(judged())


def test_p05_a_response_waits_for_its_turn_without_an_error(model, tokenizer):
    """Programs run in one process, one after another, each for the time that a verdict may take."""
    loaded, truth = manager(model, tokenizer, seconds=3), json.dumps({"inputs": ["\n"], "outputs": ["3\n"]})
    program = "```python\nimport time\ntime.sleep(0.5)\nprint({})\n```"

    async def verdicts():
        items = [JudgeInput("codegen__taco", program.format(number), truth) for number in range(8)]
        return await asyncio.gather(*map(loaded._judge, items))

    expected = [Reason.CORRECT if number == 3 else Reason.WRONG for number in range(8)]
    assert [verdict.reason for verdict in asyncio.run(verdicts())] == expected


def test_a_users_function_judges_any_source_in_a_process_of_its_own(model, tokenizer):
    """Its truths and extra_info are numpy's, as verl reads them; many responses at a time share the process."""

    def row(text):
        data = one(tokenizer, text, data_source="nobody/knows")
        truth = {"style": "rule", "ground_truth": {"answer": np.array(["ab", "c"])[0] + "c"}}
        data.non_tensor_batch["reward_model"] = np.array([truth], dtype=object)
        data.non_tensor_batch["extra_info"] = np.array([{"least": np.float64(0.01)}], dtype=object)
        return data

    loaded = manager(model, tokenizer, "auto", 5, f"verl.reward.custom_reward_function.path={OWN}",
                     "verl.reward.custom_reward_function.name=as_dict")  # fmt: skip
    texts = ["x=abc", "x=ab", "abc"] * 8

    async def all_of_them():
        return await asyncio.gather(*(loaded.run_single(row(text)) for text in texts))

    found = asyncio.run(all_of_them())
    assert [one["reward_score"] for one in found] == [1.01, 0.02, 0.01] * 8
    numbers = [one["reward_extra_info"] for one in found[:3]]
    assert [(one["score"], one["acc"], one["wrong"], one["signs"]) for one in numbers] == [
        (1.01, 1, 0, 1), (0.02, 0, 1, 1), (0.01, 0, 1, 0),
    ]  # fmt: skip
    from compositionality.train.verl.reward_manager import JudgeFailedError

    failing = manager(model, tokenizer, "auto", 5, f"reward.function={OWN}:text")
    with pytest.raises(JudgeFailedError, match=r"nobody/knows: no verdict on the response 'x' .*it returned 'abc'"):
        run(failing, row("x"))


def test_every_response_has_a_seed_of_its_own():
    from compositionality.train.verl.prompts import verl_seed

    chat = [{"role": "user", "content": "a"}]
    other = [{"role": "user", "content": "b"}]
    seeds = {verl_seed(1, f"{p:012d}", chat, s) for p in range(50) for s in range(8)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert verl_seed(1, "6f-a", chat, 0) == verl_seed(1, "0c-b", chat, 0) != verl_seed(1, "6f-a", other, 0)


def test_p09_on_policy_loss_has_the_gradient_of_the_clipped_one():
    """With the old policy equal to the new one, verl's vanilla loss and ours agree in value and gradient."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    from compositionality.train.verl import extensions  # registers
    from compositionality.train.verl.hooks import ON_POLICY

    assert extensions
    settings = {"clip_ratio": 0.2, "clip_ratio_low": 0.2, "clip_ratio_high": 0.2, "global_batch_info": {}}
    config = OmegaConf.create(settings)
    logp = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    advantages, mask = torch.tensor([[1.0], [-2.0], [0.5]]).expand(3, 5), torch.ones(3, 5)
    mask[1, 3:] = 0
    grads = {}
    for name, old in ((ON_POLICY, logp.detach() + 0.3), ("vanilla", logp.detach())):
        loss, metrics = get_policy_loss_fn(name)(old, logp, advantages, mask, "token-mean", config, None)
        grads[name] = (loss.item(), *torch.autograd.grad(loss, logp))
    assert grads[ON_POLICY][0] == grads["vanilla"][0]
    assert torch.equal(grads[ON_POLICY][1], grads["vanilla"][1])
    hand = -(advantages * mask) / mask.sum()
    torch.testing.assert_close(grads["vanilla"][1], hand)
    assert metrics["actor/pg_clipfrac"] == 0
