"""Every step as a person types it: its shortest words, and the files that stand for the words in capitals."""

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import bash_runs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from assets import save, string_task, tiny_model

from compositionality.data.problems import to_table

BASES = {  # words with which a dry run passes; what is in capitals is made below
    "train_grpo": "model.path=MODEL data.train_files=[TRAIN] trainer.output=OUT data.max_prompt_tokens=32 rollout.n=4 "
    "data.prompts_per_step=8 rollout.max_tokens=8 trainer.steps=1 run.device=cpu",
    "train_sft": "model.path=MODEL data.train_files=[ROWS] trainer.output=OUT trainer.batch_rows=8 "
    "data.max_length=64 run.device=cpu",
    "collect_rollouts": "model=MODEL problems=TRAIN output=OUT max_tokens=8",
    "evaluate": "models=[MODEL] problems=[TRAIN] output=OUT max_tokens=8",
    "passk": "models=[MODEL] problems=[TRAIN] output=OUT n_samples=2 max_tokens=8",
    "create_problems": "task=string output=OUT.parquet count=8",
    "filter_rollouts": "rollouts=[ROLLOUTS] problems=TRAIN output=OUT",
    "filter_problems": "rollouts=ROLLOUTS problems=TRAIN output=OUT.parquet",
    "split_chunks": "problems=TRAIN output=OUT chunks=2",
    "merge_data": "inputs=[TRAIN,OTHER] output=OUT.parquet",
    "write_solutions": "problems=TRAIN output=OUT",
    "make_domain_sample": "output=OUT count=60",
    "prepare_guru": "files=[TRAIN] output=OUT",
    "pretrain_tiny": "output=OUT run.device=cpu",
    "audit_data": "files=[TRAIN] output=OUT.json",
    "failure_modes": "rollouts=[m:ROLLOUTS] problems=[TRAIN] output=OUT level=1",
    "export_checkpoint": "checkpoint=NOWHERE output=OUT",
    "influence": "model=MODEL rollouts=ROLLOUTS problems=TRAIN output=OUT",
    "fit_scaling": "points=[NOWHERE.csv] output=OUT",
    "claims": "results=[accuracy/seed0:NOWHERE] output=OUT.json",
    "summarise_seeds": "inputs=[seed0:NOWHERE/s/results.parquet] output=OUT.csv",
    "set_chat_template": "model=MODEL output=OUT chat_template=own",
}
OTHERS = {  # that only test_refusals.py starts, without inputs
    "draw_figure": "inputs=[seed0:NOWHERE] output=OUT.png",
    "publish": "what=[NOWHERE] output=OUT licence=mit",
    "report": "study=NOWHERE output=OUT",
    "write_record": "results=[accuracy/seed0:NOWHERE/results.parquet] output=OUT",
    "gpu_check": "work=OUT logs=OUT device=cpu",
    "preflight": "profile=paper gpus=8 gpu_memory_gb=80",
}


def make_inputs(folder: Path) -> dict[str, Path]:
    """What the words in capitals stand for: a model, problems, rows for SFT, rollouts, a model of another family."""
    names = ("MODEL", "BARE", "ODD", "STRANGE", "TAKEN", "LOOP", "ROLLOUTS", "HALF", "NOWHERE")
    found = {name: folder / name for name in names} | {
        name: folder / f"{name}.parquet" for name in ("TRAIN", "OTHER", "ROWS", "COPY")
    }
    task = string_task((1, 2))
    for name, seed in (("TRAIN", 0), ("OTHER", 1)):
        pq.write_table(to_table([task.problem("train", seed, row) for row in range(24)], "train"), found[name])
    shutil.copy(found["TRAIN"], found["COPY"])
    save(found["MODEL"], *tiny_model([function.name for function in task.functions]))
    shutil.copytree(found["MODEL"], found["STRANGE"])
    shutil.copytree(found["MODEL"], found["BARE"], ignore=shutil.ignore_patterns("*.safetensors"))
    shutil.copytree(found["MODEL"], found["ODD"])
    (found["ODD"] / "chat_template.jinja").write_text("{% if %}")
    found["LOOP"].symlink_to(found["LOOP"])
    config = found["STRANGE"] / "config.json"
    config.write_text(
        config.read_text().replace('"qwen2"', '"gpt2"').replace('"llama"', '"gpt2"').replace('"qwen3"', '"gpt2"')
    )
    chat = [{"role": "user", "content": "reverse:abc"}, {"role": "assistant", "content": "cba"}]
    pq.write_table(pa.table({"messages": [chat] * 20, "data_source": ["string-train-level1"] * 20}), found["ROWS"])
    found["TAKEN"].mkdir()
    (found["TAKEN"] / "thesis.tex").write_text("mine")
    collected = f"{BASES['collect_rollouts']} n_samples=2 output="
    there = found | {"OUT": folder / "new"}
    assert typed("collect_rollouts", f"{collected}ROLLOUTS", there) == 0
    with pytest.MonkeyPatch.context() as patch:  # stopped with shards that are not published yet
        patch.setattr("compositionality.rollout.store.WorkingFolder.publish", lambda *_: sys.exit(9))
        assert typed("collect_rollouts", f"{collected}HALF", there) == 9
    return found


def typed(entry: str, words: str, places: Mapping[str, Path], *more: str) -> object:
    """The exit code of a command; paths stand for the words in capitals."""
    given = [re.sub("|".join(places), lambda name: str(places[name[0]]), word) for word in [*words.split(), *more]]
    return bash_runs.typed(entry, given)
