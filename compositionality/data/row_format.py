"""The columns of a problem file, and the settings that name them."""

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from compositionality.data.json_files import read_text
from compositionality.errors import UserError
from compositionality.ranges import NoEffect, NonEmptyStr

PLACEHOLDER = re.compile(r"\{(\w+)\}")
"""The name of a column in the template of a prompt."""


@dataclass(frozen=True)
class RowFormat:
    """Names of the columns of a problem file. The defaults are verl's RL schema."""

    prompt_key: str = "prompt"  # a chat, or text: one turn of a user
    source_key: str = "data_source"
    truth_key: tuple[str, ...] = ()  # several: a JSON object of them; none: reward_model.ground_truth
    source: str | None = None  # data source of every row, for files without such a column
    template: str | None = None  # a prompt with columns in braces, for rows without one
    any_source: bool = False  # accept unknown data sources, and leave ground truths unchanged

    def prompt_columns(self) -> list[str]:
        return [self.prompt_key] if self.template is None else list(dict.fromkeys(PLACEHOLDER.findall(self.template)))


RL_SCHEMA = RowFormat()


@dataclass
class RowSettings:
    """Settings for a ``RowFormat``, for every program that reads problems; the first two keys have verl's names."""

    prompt_key: NonEmptyStr = RL_SCHEMA.prompt_key  # column of the prompt: a chat, or text
    reward_fn_key: NonEmptyStr = RL_SCHEMA.source_key  # column of the data source, which names the judge
    truth_key: list[str] = field(default_factory=list)  # columns of the answer; []: reward_model's; several: an object
    source: str | None = None  # data source of rows without such a column, such as countdown
    prompt_template: NoEffect[str | None] = None  # text file with {COLUMN}: the prompt of rows without one

    def row_format(self, *, any_source: bool = False) -> RowFormat:
        """Return the row format, with the template's text. UserError for a template without a column."""
        template = None
        if self.prompt_template is not None:
            path = Path(self.prompt_template)
            template = read_text(path, "give another file as prompt_template").removesuffix("\n")
            if not PLACEHOLDER.search(template):
                raise UserError(f"{path}: has no {{COLUMN}}, so every prompt would be the same; add one")
        return RowFormat(self.prompt_key, self.reward_fn_key, (*self.truth_key,), self.source, template, any_source)

    def changed(self) -> dict[str, Any]:
        """Return the keys that differ from their defaults, without the template."""
        names = (entry.name for entry in fields(RowSettings) if entry.name != "prompt_template")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(RowSettings(), name)}

    def inputs(self) -> dict[str, Path]:
        """Return the file among these settings that is an input of a result."""
        return {} if self.prompt_template is None else {"prompt_template": Path(self.prompt_template)}
