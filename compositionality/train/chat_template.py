"""Another chat template for a model: a model folder with the same weights, as links, and other texts.

Engines, trainers and exports take the chat format from the tokenizer of a model folder, so it is chosen here alone.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, check_maker, is_to_be_checked, make, write_text
from compositionality.data.json_files import read_json_object, read_text
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr
from compositionality.rollout.model_folder import (
    check_model,
    check_weights,
    read_tokenizer,
    resolve_model,
    text_template,
)
from compositionality.rollout.prompts import chat_text
from compositionality.train.rows import check_template
from compositionality.types import Message

STEP = "set_chat_template"
FOLDER = Path(__file__).parent / "chat_templates"
OWN, TEXT = "own", "text"
ENDING = ".jinja"
LLAMA = ("<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>")
QWEN = ("<|im_end|>", "<|im_start|>")
FORMATS = {"llama-3.1": LLAMA, "plain": LLAMA, "qwen2.5": QWEN, "qwen3": (*QWEN, "<think>", "</think>")}
"""The tokens that a template writes, the one that ends an answer first."""
NAMES = (OWN, TEXT, *FORMATS)
MARKER = re.compile(r"<\|[^<>|\s]+\|>")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
TEXTS = ("*.json", "*.model", "*.txt", "*.tiktoken")
LEFT_OUT = ("manifest.json", "chat_template.json")
DAMAGED = "download or export the model again"


@dataclass
class ChatTemplateSettings:
    """Settings of ``examples/set_chat_template.py``."""

    model: NonEmptyStr = REQUIRED  # model folder or Hub id
    output: NonEmptyStr = REQUIRED  # model folder to make, whose weights are links
    chat_template: NonEmptyStr = REQUIRED  # own, text (adds nothing), llama-3.1, plain, qwen2.5, qwen3, or FILE.jinja
    eos_token: str = ""  # that ends an answer; empty: the format's; of a file and of own: the tokenizer's
    force: bool = False  # replace a result that was made from something else


def set_chat_template(settings: ChatTemplateSettings) -> None:
    """Make the model folder ``settings.output`` unless it is there.

    UserError for a template that does not exist or does not render, for a token of it that the tokenizer does not
    have, and for an answer that it does not end with exactly one EOS.
    """
    check_name(settings.chat_template, "chat_template")
    source, target = resolve_model(settings.model), Path(settings.output)
    template, eos, eos_id = chosen(settings, source)
    recipe = Recipe(STEP, {"chat_template": template, "eos_token": eos}, {"model": source})

    def write(folder: Path) -> dict[str, str]:
        write_folder(source, folder, template, eos, eos_id)
        check_folder(folder, settings)
        return {"chat_template": settings.chat_template}

    if make(target, recipe, write, force=settings.force):
        print(f"{target}: the weights of {source} with the chat template {settings.chat_template}, EOS {eos}")


def check(settings: ChatTemplateSettings) -> None:
    """Check, for a dry run, the template, and what the tokenizer has of it; if the model is not there, say so."""
    check_name(settings.chat_template, "chat_template")
    model, output = Path(settings.model).expanduser(), Path(settings.output)
    check_maker(output, STEP, [model] * model.exists(), force=settings.force)  # else perhaps a Hub id
    if is_to_be_checked(settings.model, dry=True):
        chosen(settings, model)
    else:
        print(f"{settings.model}: no such folder here, so the model is not checked", file=sys.stderr)


def chosen(settings: ChatTemplateSettings, source: Path) -> tuple[str, str, int]:
    """Return the Jinja text of the template, the token that ends an answer, its id. UserError for what does not fit."""
    tokenizer = read_tokenizer(source)
    check_weights(source)
    template, tokens = find_template(settings.chat_template, tokenizer, source)
    eos = settings.eos_token or (tokens[0] if tokens else tokenizer.eos_token)
    if not eos:
        raise UserError(f"{source}: the tokenizer has no EOS token; give eos_token=TOKEN, which ends an answer")
    check_tokens(tokenizer, (eos, *tokens), settings, source)
    return template, eos, tokenizer.convert_tokens_to_ids(eos)


def check_name(name: str, setting: str) -> None:
    """Raise UserError, naming the ``setting``, for a chat template that does not exist."""
    if name not in NAMES and not (name.endswith(ENDING) and Path(name).is_file()):
        raise UserError(f"{setting}={name}: choose {', '.join(NAMES)}, or a file that ends in {ENDING}")


def find_template(name: str, tokenizer: Any, source: Path) -> tuple[str, tuple[str, ...]]:
    """Return the Jinja text of a template, and the tokens that it writes."""
    if name in FORMATS:
        return (FOLDER / f"{name}{ENDING}").read_text().strip(), FORMATS[name]
    if name == TEXT:
        return text_template(tokenizer), ()
    if name != OWN:
        return read_text(Path(name), "give another file as chat_template"), ()
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not template:
        others = ", ".join(FORMATS)
        raise UserError(f"{source}: the tokenizer has no chat template of its own; choose chat_template from {others}")
    return str(template), ()


def check_tokens(tokenizer: Any, tokens: tuple[str, ...], settings: ChatTemplateSettings, source: Path) -> None:
    """Raise UserError for a token of the template that the tokenizer does not have as one."""
    vocabulary = tokenizer.get_vocab()
    for token in tokens:
        if token not in vocabulary:
            raise UserError(
                f"{source}: the tokenizer has no token {token}, which chat_template={settings.chat_template} writes; "
                "choose the template of the model's family, or own (in a study CHAT_TEMPLATE=own)"
            )


def write_folder(source: Path, target: Path, template: str, eos: str, eos_id: int) -> None:
    """Link the weights of ``source``; write its texts with another chat template and EOS, for both transformers."""
    target.mkdir(parents=True)
    for path in _files(source, WEIGHTS):
        (target / path.name).symlink_to(path.resolve())
    for path in _files(source, TEXTS):
        if path.name not in LEFT_OUT:
            shutil.copyfile(path, target / path.name)
    (target / "chat_template.jinja").write_text(template)
    _change(target / "tokenizer_config.json", {"chat_template": template, "eos_token": eos})
    if (target / "special_tokens_map.json").is_file():
        _change(target / "special_tokens_map.json", {"eos_token": eos})
    config = read_json_object(target / "config.json", DAMAGED)
    generation = target / "generation_config.json"
    before = (read_json_object(generation, DAMAGED) if generation.is_file() else config).get("eos_token_id")
    more = [one for one in (before if isinstance(before, list) else [before]) if one not in (None, eos_id)]
    ends = {"eos_token_id": [eos_id, *more] if more else eos_id}
    _change(generation, ends)
    _change(target / "config.json", ends)
    from compositionality.train.checkpoint import write_for_both_generations  # it imports torch

    write_for_both_generations(target)


def check_folder(folder: Path, settings: ChatTemplateSettings) -> None:
    """Raise UserError unless the folder loads and its template ends an answer with exactly one EOS."""
    tokenizer, name = read_tokenizer(folder), settings.chat_template
    chat = [Message(role="user", content="1"), Message(role="assistant", content="1")]
    try:
        written = tuple(dict.fromkeys(MARKER.findall(chat_text(tokenizer, chat, add_generation_prompt=True))))
        if name.endswith(ENDING):
            check_tokens(tokenizer, written, settings, Path(settings.model))
        check_template(Path(name if name.endswith(ENDING) else settings.model), tokenizer)
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"chat_template={name}: does not render a question and an answer: {reason}") from error
    check_model(folder)


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """Yield files of these names; of weights in several formats the first."""
    for pattern in patterns:
        paths = sorted(folder.glob(pattern))
        yield from paths
        if paths and patterns == WEIGHTS:
            return


def _change(path: Path, changes: dict[str, Any]) -> None:
    content = read_json_object(path, DAMAGED) if path.is_file() else {}
    write_text(path, json.dumps(content | changes, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
