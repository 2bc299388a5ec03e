"""Algorithms, LoRA and a user's reward function take two real steps with verl on a CPU.

DAPO: test_grpo_real.py, GRPO: test_study.py. Those that differ from these by their advantages alone are not run: of all
algorithms what verl computes with our configuration is compared in single/test_grpo_maths.py.
"""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from grpo_assets import make

sys.path.insert(0, str(Path(__file__).parents[1] / "reward"))
from own_rows import OWN, write_own_rows

from compositionality.train.common.compute import FLOPS, PAPER_FLOPS
from compositionality.train.common.metrics import read_metrics

ROOT = Path(__file__).resolve().parents[2]
LORA = "ppo"
"""The algorithm that moves adapters here, of which the critic beside them has none."""
OWN_REWARD = "dr_grpo"
"""The algorithm whose rows no task knows: a function of their own scores them."""
KL = ["algorithm.kl=k3", "algorithm.kl_coef=0.1"]
CHOSEN = {
    LORA: ["model.lora.rank=4", *KL, "data.val_files=[]", "trainer.eval_every=1"],  # the reference: without adapters
    OWN_REWARD: KL,  # the reference: a worker of its own
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make(tmp_path_factory.mktemp("algorithms"))
    write_own_rows(folder / "train.parquet", folder / OWN_REWARD / "train.parquet")
    write_own_rows(folder / "test.parquet", folder / OWN_REWARD / "test.parquet")
    return folder


@pytest.mark.parametrize("name", CHOSEN)
def test_two_steps(made: Path, tmp_path: Path, name: str) -> None:
    chosen = [f"algorithm={name}", *CHOSEN[name]]
    data = made
    if name == OWN_REWARD:
        data = made / OWN_REWARD
        chosen += [f"verl.reward.custom_reward_function.path={OWN}", "verl.reward.custom_reward_function.name=as_dict"]
    words = [
        "engine=verl", "run.device=cpu", f"model.path={made / 'model'}", f"data.train_files=[{data / 'train.parquet'}]",
        f"data.val_files=[{data / 'test.parquet'}]", f"trainer.output={tmp_path / 'run'}", "data.max_prompt_tokens=32",
        "rollout.max_tokens=64", "data.prompts_per_step=8", "rollout.n=4", "optim.lr=1e-3", "trainer.steps=2",
        "trainer.save_every=0", "trainer.eval_every=0", "trainer.micro_batch_tokens=4096", *chosen,
    ]  # fmt: skip
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("VERL", "WANDB", "RAY"))}
    command = [sys.executable, str(ROOT / "examples" / "train_grpo.py"), *words]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    rows = [row for row in read_metrics(tmp_path / "run/metrics.jsonl") if row["step"]]
    assert [row["step"] for row in rows] == [1, 2]
    assert all(math.isfinite(row["actor/grad_norm"]) for row in rows)
    if name == OWN_REWARD:
        assert all(row["critic/score/min"] == pytest.approx(0.02, abs=0.011) for row in rows)
        assert all(row["critic/score/max"] == pytest.approx(1.01) for row in rows)
        assert all(0.02 < row["critic/score/mean"] < 1.01 for row in rows)
    n = rows[0][PAPER_FLOPS] / (6 * rows[0]["perf/total_num_tokens"])
    by_token = {LORA: 2 + 4 + 2 + 8, OWN_REWARD: 2 + 6 + 2}[name]
    assert rows[0][FLOPS] == pytest.approx(n * by_token * rows[0]["perf/total_num_tokens"])
    assert rows[1][FLOPS] > rows[0][FLOPS]
    assert ("critic/vf_loss" in rows[0]) == (name == "ppo")
    assert "actor/kl_loss" in rows[0]
    assert not (tmp_path / "run/best").exists()
    from safetensors.torch import load_file

    before, after = (load_file(one / "model.safetensors") for one in (made / "model", tmp_path / "run/final"))
    assert before.keys() == after.keys()
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    linear = {key for key in before if "proj" in key}
    assert changed
    assert name != LORA or changed == linear
    assert rows[1]["actor/rollout_gap"] < (0.1 if name == LORA else 1e-3)  # verl rounds merged weights to bfloat16
