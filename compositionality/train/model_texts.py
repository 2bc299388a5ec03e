"""The texts of a model folder that is written here, in the words of transformers 4 as well as of 5."""

import json
from pathlib import Path
from typing import Any

from compositionality.data.artefact import write_text

FULL, LOCAL = "full_attention", "sliding_attention"
OF_NO_SCALING = {"rope_theta", "partial_rotary_factor"}


def write_for_both_generations(folder: Path) -> None:
    """Add to the configurations of model and tokenizer in ``folder`` what transformers 4 reads; 5 reads as before.

    transformers 5 writes the base of rotary positions inside ``rope_parameters``, where 4 does not look: it would take
    its own default and answer wrong without a word. The tokenizer's class and extra tokens have new names too.
    """
    changes = {"config.json": with_old_config_keys, "tokenizer_config.json": with_old_tokenizer_words}
    for file, change in ((folder / name, change) for name, change in changes.items()):
        if file.is_file():
            content = change(json.loads(file.read_text()))
            write_text(file, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def with_old_config_keys(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` with ``rope_theta``, ``rope_scaling`` and ``torch_dtype``, also in configurations in it."""
    parts = {
        key: with_old_config_keys(value)
        for key, value in config.items()
        if key.endswith("_config") and isinstance(value, dict)
    }
    old = _old_rope_keys(config.get("rope_parameters") or {})
    if isinstance(config.get("dtype"), str):
        old["torch_dtype"] = config["dtype"]
    return {**config, **parts, **old}


def with_old_tokenizer_words(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` with a tokenizer class that both know, and extra special tokens by the name both read."""
    new = dict(config)
    if new.get("tokenizer_class") == "TokenizersBackend":
        new["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(new.get("extra_special_tokens"), list):  # 4 takes a mapping under this name
        new["additional_special_tokens"] = new.pop("extra_special_tokens")
    return new


def _old_rope_keys(rope: dict[str, Any]) -> dict[str, Any]:
    """Return what 4 calls the rotary settings, which 5 keeps in one mapping, or in one for each kind of attention."""
    if isinstance(rope.get(FULL), dict):
        local = rope.get(LOCAL) or {}
        base = {"rope_local_base_freq": local["rope_theta"]} if "rope_theta" in local else {}
        return _old_rope_keys(rope[FULL]) | base
    old = {key: rope[key] for key in sorted(OF_NO_SCALING & rope.keys())}
    scaling = {key: value for key, value in rope.items() if key not in OF_NO_SCALING}
    if scaling and scaling != {"rope_type": "default"}:
        old["rope_scaling"] = scaling
    return old
