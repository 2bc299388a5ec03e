"""Rows in a user's own columns, and a base model without a chat template that is asked them as plain text."""

import json
from pathlib import Path
from typing import Any

from base_models import LLAMA, make_base

from compositionality.config.cli import parse
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.rows import read_grpo_inputs

TEMPLATE = Path(__file__).resolve().parents[2] / "compositionality/train/prompt_templates/r1_zero_countdown.txt"
ROWS = [{"target": 8 + number, "nums": [3, 5, number]} for number in range(1, 9)]
KEYS = ["source=countdown", "truth_key=[target, nums]", f"prompt_template={TEMPLATE}"]


def make(folder: Path) -> Path:
    """Rows.jsonl in ``folder``, and model/, whose tokenizer begins texts with BOS."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

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
