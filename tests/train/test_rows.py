"""Rows of users in their own columns, with the chat template and without: both engines ask the same tokens."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from base_models import LLAMA, make_base

from compositionality.config.cli import parse
from compositionality.data.artefact import verify
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import prompt_tokens
from compositionality.rollout.settings import CollectSettings
from compositionality.train.common.chat_template import ChatTemplateSettings, set_chat_template
from compositionality.train.common.metrics import read_metrics
from compositionality.train.grpo import train
from compositionality.train.grpo_inputs import read_grpo_inputs
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.rows import files_for_verl, row_format

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "compositionality" / "train" / "prompt_templates" / "r1_zero_countdown.txt"
ROWS = [{"target": 8 + number, "nums": [3, 5, number]} for number in range(1, 9)]
KEYS = ["source=countdown", "truth_key=[target, nums]", f"prompt_template={TEMPLATE}"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/, which has no chat template and a tokenizer that begins texts with BOS, and rows.jsonl."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("base")
    model = make_base(folder / "model", LLAMA)
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.bos_token = LLAMA[0]
    begin = (LLAMA[0], tokenizer.bos_token_id)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=f"{LLAMA[0]} $A", special_tokens=[begin])
    tokenizer.save_pretrained(model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 1024}))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return folder


def words(base: Path, out: Path, *more: str) -> list[str]:
    return [
        f"model.path={base / 'model'}", f"data.train_files={base / 'rows.jsonl'}", f"trainer.output={out}",
        *(f"data.{key}" for key in KEYS), "data.apply_chat_template=false", "data.max_prompt_tokens=700",
        "data.prompts_per_step=4", "rollout.n=2", "rollout.max_tokens=8", "trainer.steps=2", "trainer.eval_every=0",
        *more,
    ]  # fmt: skip


def inputs(base: Path, *more: str) -> Any:
    return read_grpo_inputs(parse(GrpoSettings, words(base, base / "none", *more)))


def text(row: dict[str, Any]) -> str:
    filled: str = TEMPLATE.read_text().replace("{nums}", str(row["nums"])).replace("{target}", str(row["target"]))
    return filled.removesuffix("\n")


def test_without_the_chat_template_a_prompt_is_what_the_tokenizer_makes_of_its_text(base: Path) -> None:
    found = inputs(base)
    assert found.model.tokenizer.decode(found.problems[0].prompt_ids) == LLAMA[0] + text(ROWS[0])
    assert text(ROWS[0]).endswith("\n<think>")
    assert [one.prompt_ids for one in found.problems] == [found.model.tokenizer(text(row)).input_ids for row in ROWS]
    assert [json.loads(one.ground_truth) for one in found.problems] == ROWS
    with pytest.raises(UserError, match="no chat template; choose one with"):
        inputs(base, "data.apply_chat_template=true")


def test_a_run_in_r1_zero_style_makes_a_model_that_is_asked_in_the_same_way(base: Path, tmp_path: Path) -> None:
    """For real: two steps, then rollouts of the model made, by the same keys."""
    made = train(parse(GrpoSettings, words(base, tmp_path / "run")))
    assert [row["step"] for row in read_metrics(made / "metrics.jsonl")] == [0, 1, 2]
    recipe = verify(made / "final")
    assert recipe.settings["data.truth_key"] == ["target", "nums"]
    assert {"model", "prompt_template"} < recipe.inputs.keys()
    asked = [f"problems={base / 'rows.jsonl'}", f"output={tmp_path / 'rollouts'}", f"model={made / 'final'}"]
    settings = parse(CollectSettings, [*asked, "max_tokens=8", *KEYS])
    rollouts = collect(settings)
    assert verify(rollouts).inputs["prompt_template"] == recipe.inputs["prompt_template"]
    chats = read_problems(base / "rows.jsonl", settings.row_format())["prompt"].to_pylist()
    expected = [one.prompt_ids for one in inputs(base).problems]
    assert [prompt_tokens(load_tokenizer(made / "final"), chat) for chat in chats] == expected
    further = inputs(base, f"model.path={made / 'final'}", "data.apply_chat_template=true")
    assert [one.prompt_ids for one in further.problems] == expected
    with pytest.raises(UserError, match=r"made from other inputs .*source: 'countdown' then"):
        collect(parse(CollectSettings, [*asked, "max_tokens=8"]))


def test_the_template_of_no_text_is_a_choice_for_a_model_that_is_not_trained(base: Path, tmp_path: Path) -> None:
    set_chat_template(ChatTemplateSettings(str(base / "model"), str(tmp_path / "text"), "text"))
    tokenizer = load_tokenizer(tmp_path / "text")
    expected = [one.prompt_ids for one in inputs(base).problems]
    assert [prompt_tokens(tokenizer, [{"role": "user", "content": text(row)}]) for row in ROWS] == expected


def test_verl_gets_the_file_as_it_is_only_in_its_own_schema(base: Path, tmp_path: Path) -> None:
    form = row_format(parse(GrpoSettings, words(base, tmp_path)))
    [made] = files_for_verl([str(base / "rows.jsonl")], form, tmp_path / "rows")
    plain = row_format(GrpoSettings())
    assert read_problems(Path(made)).equals(read_problems(base / "rows.jsonl", form))
    assert files_for_verl([made], plain, tmp_path / "other") == [made]


@pytest.mark.full
@pytest.mark.slow
def test_p09_verl_asks_the_same_tokens(base: Path, tmp_path: Path) -> None:
    out, dump = tmp_path / "run", tmp_path / "rollouts"
    more = ["engine=verl", "run.device=cpu", f"verl.trainer.rollout_data_dir={dump}", "data.shuffle=false"]
    more.append(f"data.val_files={base / 'rows.jsonl'}")
    command = [sys.executable, str(ROOT / "examples" / "train_grpo.py"), *words(base, out, *more)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VERL", "WANDB", "RAY"))}
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    rows = read_metrics(out / "metrics.jsonl")
    for step, row in enumerate((row for row in rows if "actor/grad_norm" in row), start=1):
        asked = [json.loads(line) for line in (dump / f"{step}.jsonl").open()]
        mine = inputs(base).problems[4 * step - 4 : 4 * step]
        assert {one["input"] for one in asked} == {text(ROWS[number]) for number in range(4 * step - 4, 4 * step)}
        lengths = [len(one.prompt_ids) for one in mine]  # with the text, of bytes, they tell the ids: BOS is not shown
        assert [row[f"prompt_length/{name}"] for name in ("min", "max")] == [min(lengths), max(lengths)]
    assert load_tokenizer(out / "final").chat_template == inputs(base).model.tokenizer.chat_template
    assert {"model", "prompt_template"} < verify(out / "final").inputs.keys()
