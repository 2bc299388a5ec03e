"""Algorithms, LoRA, rows and rewards of a user, a model that reasons: two real steps with verl on a CPU.

DAPO: test_grpo_real.py, GRPO: test_studies.py. Those that differ from these by their advantages alone are not run: of
all algorithms what verl computes with our configuration is compared in single/test_grpo_maths.py.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import user_rows
from assets import write_strings
from base_models import make_reasoning
from own_rows import OWN, write_own_rows
from trainer_runs import train

from compositionality.data.artefact import verify
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.train.metrics import FLOPS, PAPER_FLOPS, read_metrics

SHORT = ["engine=verl", "run.device=cpu", "optim.lr=1e-3", "trainer.save_every=0", "algorithm.kl=k3"]
pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1200)]


def two_steps(out: Path, words: list[str], flops: int) -> list[dict[str, Any]]:
    """The metrics of a run; ``flops``: a forward pass of the model is 2 a parameter and token."""
    train("train_grpo", [*words, *SHORT, "algorithm.kl_coef=0.1"])
    rows = [row for row in read_metrics(out / "metrics.jsonl") if row["step"]]
    assert [row["step"] for row in rows] == [1, 2]
    assert all(math.isfinite(row["actor/grad_norm"]) for row in rows)
    n = rows[0][PAPER_FLOPS] / (6 * rows[0]["perf/total_num_tokens"])
    assert rows[0][FLOPS] == pytest.approx(n * flops * rows[0]["perf/total_num_tokens"])
    assert rows[1][FLOPS] > rows[0][FLOPS]
    assert "actor/kl_loss" in rows[0]
    assert not (out / "best").exists()
    return rows


def changed(model: Path, out: Path) -> tuple[set[str], set[str]]:
    """The names of all weights, and of those that the run changed."""
    from safetensors.torch import load_file

    before, after = (load_file(one / "model.safetensors") for one in (model, out / "final"))
    assert before.keys() == after.keys()
    return {*before}, {key for key in before if not torch.equal(before[key], after[key])}


def test_p09_ppo_moves_adapters_and_verl_asks_the_tokens_of_the_other_engine(tmp_path: Path) -> None:
    """Rows in own columns, without a chat template. The critic has no adapters; without them is the reference."""
    base, out, dump = user_rows.make(tmp_path), tmp_path / "run", tmp_path / "run" / "rollouts"
    own = [
        "algorithm=ppo", "model.lora.rank=4", "data.shuffle=false",
        f"verl.reward.custom_reward_function.path={OWN}",
        "verl.reward.custom_reward_function.name=odd",
        f"data.val_files={base / 'rows.jsonl'}",
    ]  # fmt: skip
    words = user_rows.words(base, out, *own)
    rows, problems = two_steps(out, words, 2 + 4 + 2 + 8), user_rows.inputs(base).problems
    assert "critic/vf_loss" in rows[0]
    names, moved = changed(base / "model", out)
    assert moved == {name for name in names if "proj" in name}
    assert rows[1]["actor/rollout_gap_mean"] < 0.1  # verl rounds merged weights to bfloat16
    for step, row in enumerate(rows, start=1):
        numbers = range(4 * step - 4, 4 * step)
        asked = [json.loads(line) for line in (dump / f"{step}.jsonl").open()]
        assert {one["input"] for one in asked} == {user_rows.text(user_rows.ROWS[number]) for number in numbers}
        lengths = [len(problems[number].prompt_ids) for number in numbers]
        # with the text, of bytes, lengths tell the ids: BOS is not shown
        assert [row[f"prompt_length/{name}"] for name in ("min", "max")] == [min(lengths), max(lengths)]
    assert load_tokenizer(out / "final").chat_template == user_rows.inputs(base).model.tokenizer.chat_template
    assert {"model", "prompt_template"} < verify(out / "final").inputs.keys()


def test_dr_grpo_takes_a_reward_of_ones_own_and_a_model_that_reasons(tmp_path: Path) -> None:
    """Rows that no task knows; the template opens a thought in the prompt. The reference is a worker of its own."""
    model, out = make_reasoning(tmp_path / "model", "qwq"), tmp_path / "run"
    write_strings(tmp_path / "problems.parquet", 16)
    rows = two_steps(out, [
        "algorithm=dr_grpo", f"model.path={model}", f"trainer.output={out}", "data.val_files=[]",
        f"data.train_files={write_own_rows(tmp_path / 'problems.parquet', tmp_path / 'rows.parquet')}",
        f"verl.reward.custom_reward_function.path={OWN}", "verl.reward.custom_reward_function.name=as_dict",
        "data.max_prompt_tokens=64", "rollout.max_tokens=64", "data.prompts_per_step=8", "rollout.n=4",
        "trainer.steps=2", "trainer.eval_every=1",
    ], 2 + 6 + 2)  # fmt: skip
    for row in rows:  # 0.01 of a completion without "=", 0.02 of one with
        assert [row[f"critic/score/{name}"] for name in ("min", "max")] == pytest.approx([0.01, 0.02])
        assert 0.01 < row["critic/score/mean"] < 0.02
    assert "critic/vf_loss" not in rows[0]
    assert changed(model, out)[1]
    assert rows[1]["actor/rollout_gap_mean"] < 1e-3  # vLLM and the trainer see the same prompts
    assert load_tokenizer(out / "final").chat_template == load_tokenizer(model).chat_template
