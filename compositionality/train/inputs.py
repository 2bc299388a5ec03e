"""What the single-file trainers read, checked: a start reads all, a dry run what is there already."""

from dataclasses import dataclass, replace
from pathlib import Path

from compositionality.data.artefact import is_to_be_checked
from compositionality.rollout.engines.vllm import check_heads
from compositionality.rollout.model_folder import ModelFolder, check_context, check_family, check_model, read_config
from compositionality.rollout.prompts import ChatRow
from compositionality.train.chat_rows import check_generation_prompt, check_template, load_rows
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.lora import check_adapters
from compositionality.train.memory import check_training
from compositionality.train.metrics import entropies
from compositionality.train.prompts import TokenizedProblem, row_format, tokenize_problems
from compositionality.train.settings import check_split
from compositionality.train.sft_settings import SftSettings


@dataclass(frozen=True)
class GrpoInputs:
    """The model to start from, the problems to train on and those to validate on; entropies to follow, by step."""

    model: ModelFolder
    problems: list[TokenizedProblem]
    val_problems: list[TokenizedProblem]
    entropies: list[float]


def read_grpo_inputs(settings: GrpoSettings) -> GrpoInputs | None:
    """Return model and problems; None in a dry run without the model.

    UserError for prompts that do not fit it, and for a run that does not fit this machine.
    """
    data, dry, like = settings.data, settings.dry_run, settings.algorithm.entropy_like
    targets = entropies(Path(like), settings.trainer.last_step()) if like and is_to_be_checked(like, dry=dry) else []
    if not is_to_be_checked(settings.model.path, dry=dry):
        return None
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
    problems = tokenize_problems(train, *read, data.train_limit, row_format(settings))
    val_problems = tokenize_problems(held_out, *read, settings.trainer.eval_limit, row_format(settings))
    longest = data.max_prompt_tokens + settings.rollout.max_tokens
    check_context(model, longest, "data.max_prompt_tokens + rollout.max_tokens")
    check_training(settings)
    return GrpoInputs(model, problems, val_problems, targets)


@dataclass(frozen=True)
class SftInputs:
    """The model to start from, the rows to train on and those to validate on."""

    model: ModelFolder
    rows: list[ChatRow]
    val_rows: list[ChatRow]


def read_sft_inputs(settings: SftSettings) -> SftInputs | None:
    """Return model and rows; None in a dry run without the model.

    UserError for rows that do not fit it, and for a run that does not fit this machine.
    """
    data, dry = settings.data, settings.dry_run
    if not is_to_be_checked(settings.model.path, dry=dry):
        return None
    model = check_model(Path(settings.model.path))
    check_family(model.path)
    check_split(read_config(model.path), settings.mesh.tensor)
    check_adapters(model.path, settings.model.lora)
    check_context(model, data.max_length, "data.max_length")
    check_template(model.path, model.tokenizer)
    check_training(settings)
    columns = (data.messages_key, data.prompt_key, data.response_key)
    rows, val_rows = (
        [
            row
            for path in paths
            if is_to_be_checked(path, dry=dry)
            for row in load_rows(Path(path), model.tokenizer, data.max_length, columns)
        ]
        for paths in (data.train_files, data.val_files)
    )
    if data.prompt_loss:
        rows = [replace(row, loss_mask=[0] + [1] * (len(row.tokens) - 1)) for row in rows]
    return SftInputs(model, rows, val_rows)
