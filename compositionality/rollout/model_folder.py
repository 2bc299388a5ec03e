"""Is this folder a model that can be asked? Checked before any engine starts, without torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import UserError


@dataclass(frozen=True)
class ModelFolder:
    """A checked Hugging Face folder: its tokenizer, every id that ends an answer, its longest sequence in tokens."""

    path: Path
    tokenizer: Any
    eos_ids: tuple[int, ...]
    max_positions: int | None


def check_model(path: Path) -> ModelFolder:
    """Check config, weights, tokenizer, chat template and EOS. UserError says what is missing."""
    if not path.is_dir():
        raise UserError(f"{path}: no such model folder; give a folder in Hugging Face format")
    config = _read_json(path / "config.json", "no model folder: config.json is missing")
    _check_weights(path)
    tokenizer = load_tokenizer(path)
    vocabulary = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    if vocabulary is not None and len(tokenizer) > vocabulary:
        raise UserError(f"{path}: the tokenizer has {len(tokenizer)} tokens, the model only {vocabulary}")
    max_positions = config.get("max_position_embeddings")
    return ModelFolder(path, tokenizer, _eos_ids(path, config, tokenizer), max_positions)


def load_tokenizer(path: Path) -> Any:
    """The tokenizer of a model folder, with a chat template and an EOS token for certain."""
    if not any((path / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
        raise UserError(f"{path}: no tokenizer (tokenizer.json, tokenizer_config.json) in the model folder")
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: the tokenizer does not load: {' '.join(str(error).split())[:200]}") from error
    if not tokenizer.chat_template:
        raise UserError(f"{path}: the tokenizer has no chat template; add one (tokenizer_config.json, chat_template)")
    if tokenizer.eos_token_id is None:
        raise UserError(f"{path}: the tokenizer has no EOS token; answers would never end; set eos_token")
    return tokenizer


def _read_json(path: Path, missing: str) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{path.parent}: {missing}")
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise UserError(f"{path}: not readable as JSON (truncated?)") from error
    return content


def _check_weights(path: Path) -> None:
    index = path / "model.safetensors.index.json"
    if index.is_file():
        names = set(_read_json(index, "no weights")["weight_map"].values())
    else:
        names = {file.name for file in path.glob("*.safetensors")}
    if not names and not list(path.glob("pytorch_model*.bin")):
        raise UserError(f"{path}: no weights (*.safetensors) in the model folder")
    for name in sorted(names):
        _check_safetensors(path / name)


def _check_safetensors(path: Path) -> None:
    """A safetensors file says how long it must be: eight bytes, a header, the tensors."""
    if not path.is_file():
        raise UserError(f"{path}: weights are missing although the index names them")
    with path.open("rb") as stream:
        header_bytes = int.from_bytes(stream.read(8), "little")
        try:
            header = json.loads(stream.read(min(header_bytes, path.stat().st_size)))
        except ValueError as error:
            raise UserError(f"{path}: damaged weights (truncated?)") from error
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    if path.stat().st_size != 8 + header_bytes + max(ends, default=0):
        raise UserError(f"{path}: damaged weights (truncated?)")


def _eos_ids(path: Path, config: dict[str, Any], tokenizer: Any) -> tuple[int, ...]:
    """EOS of the tokenizer, and those of generation_config.json or config.json."""
    generation = path / "generation_config.json"
    told = _read_json(generation, "") if generation.is_file() else config
    more = told.get("eos_token_id")
    ids = {tokenizer.eos_token_id, *(more if isinstance(more, list) else [more])}
    return tuple(sorted(eos for eos in ids if eos is not None))
