"""What a run of GRPO reads, checked: a start reads all, a dry run what is there already."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compositionality.data.artefact import is_to_be_checked
from compositionality.data.problems import read_problems
from compositionality.data.row_format import RL_SCHEMA, RowFormat
from compositionality.rollout.engines.vllm import check_heads
from compositionality.rollout.model_folder import check_context, check_family, check_model, read_config
from compositionality.rollout.prompts import check_prompt_lengths, prompts_as_tokens, readable
from compositionality.train.chat_rows import check_generation_prompt
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.lora import check_adapters
from compositionality.train.memory import check_training
from compositionality.train.metrics import entropies
from compositionality.train.prompts import GrpoInputs, TokenizedProblem
from compositionality.train.settings import check_split


def read_grpo_inputs(settings: GrpoSettings) -> GrpoInputs:
    """Return tokenizer and problems; in a dry run of those files that are there.

    UserError for prompts that do not fit the model, and for a run that does not fit this machine.
    """
    data, dry, like = settings.data, settings.dry_run, settings.algorithm.entropy_like
    targets = entropies(Path(like), settings.trainer.last_step()) if like and is_to_be_checked(like, dry=dry) else []
    model = check_model(Path(settings.model.path), chat_template=data.apply_chat_template)
    check_generation_prompt(model.path, model.tokenizer)
    check_family(model.path)
    check_split(read_config(model.path), settings.mesh.tensor)
    check_adapters(model.path, settings.model.lora)
    if settings.rollout.engine == "vllm":
        check_heads(model.path, "rollout.engine=builtin")
    train = [path for path in data.train_files if is_to_be_checked(path, dry=dry)]
    held_out = [path for path in data.val_files if is_to_be_checked(path, dry=dry)]
    read = (model.tokenizer, data.max_prompt_tokens)
    problems = tokenize_problems(train, *read, data.train_limit, settings.row_format())
    val_problems = tokenize_problems(held_out, *read, settings.trainer.eval_limit, settings.row_format())
    longest = data.max_prompt_tokens + settings.rollout.max_tokens
    check_context(model, longest, "data.max_prompt_tokens + rollout.max_tokens")
    check_training(settings)
    return GrpoInputs(model.tokenizer, model.eos_ids, problems, val_problems, targets)


def tokenize_problems(
    paths: Sequence[str | Path],
    tokenizer: Any,
    max_tokens: int,
    limit: int | None = None,
    row_format: RowFormat = RL_SCHEMA,
) -> list[TokenizedProblem]:
    """Return all files' problems (``limit`` of each data source); UserError if a prompt has over ``max_tokens``."""
    problems: list[TokenizedProblem] = []
    counts: Counter[str] = Counter()
    columns = ("data_source", "prompt", "reward_model", *(["extra_info"] if row_format.any_source else []))
    for path in map(Path, paths):
        rows = read_problems(path, row_format).select([*columns]).to_pylist()
        prompts = prompts_as_tokens(tokenizer, readable((row["prompt"] for row in rows), tokenizer, str(path)))
        check_prompt_lengths(map(len, prompts), max_tokens, str(path))
        for row, prompt_ids in zip(rows, prompts, strict=True):
            counts[row["data_source"]] += 1
            if limit is None or counts[row["data_source"]] <= limit:
                truth = row["reward_model"]["ground_truth"]
                problems.append(TokenizedProblem(prompt_ids, row["data_source"], truth, row.get("extra_info")))
    return problems
