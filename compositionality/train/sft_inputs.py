"""What a run of SFT reads, checked: a start reads all, a dry run what is there already."""

from dataclasses import dataclass, replace
from pathlib import Path

from compositionality.data.artefact import is_to_be_checked
from compositionality.rollout.model_folder import ModelFolder, check_context, check_family, check_model, read_config
from compositionality.rollout.prompts import ChatRow
from compositionality.train.chat_rows import check_template, load_rows
from compositionality.train.lora import check_adapters
from compositionality.train.memory import check_training
from compositionality.train.settings import check_split
from compositionality.train.sft_settings import SftSettings


@dataclass(frozen=True)
class SftInputs:
    """The model to start from, the rows to train on and those to validate on."""

    model: ModelFolder
    rows: list[ChatRow]
    val_rows: list[ChatRow]


def read_sft_inputs(settings: SftSettings) -> SftInputs:
    """Return model and rows; in a dry run of those files that are there.

    UserError for rows that do not fit the model, and for a run that does not fit this machine.
    """
    data, dry = settings.data, settings.dry_run
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
