"""Model folders and Hub ids, checked before an engine starts; sizes of models."""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.memory import BYTES, ModelShape
from compositionality.yaml_files import read_yaml_mapping

KNOWN = Path(__file__).parents[1] / "config" / "models"
FAMILIES = ("llama", "qwen2", "qwen3")
"""Model families of the single-file trainers and the built-in sampler."""
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
MODEL_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.tiktoken")
TEXT = (
    "{% for turn in messages %}{{ turn['content'] }}{% if turn['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}"
)
"""A chat template that adds nothing to a prompt."""
OTHER_FILES = ("*/*", "consolidated*")  # sub-folders and weights in other formats
ADAPTER = "adapter_config.json"
AGAIN = "download or export the model again"


@dataclass(frozen=True)
class ModelFolder:
    """A checked Hugging Face folder: tokenizer, every token id that ends a completion, context length in tokens."""

    path: Path
    tokenizer: Any
    eos_ids: tuple[int, ...]
    max_positions: int | None


def resolve_model(path_or_id: str | Path) -> Path:
    """Return the folder of a model: ``path_or_id`` itself if it is a folder, else the snapshot of that Hub id.

    Downloads weights, config and tokenizer unless the Hugging Face cache has them or HF_HUB_OFFLINE=1.
    """
    path, name = Path(path_or_id).expanduser(), str(path_or_id)
    if path.is_dir():
        return path
    if not HUB_ID.fullmatch(name):
        raise UserError(f"{name}: no such model folder; give a folder in Hugging Face format or a Hub id (owner/name)")
    return _snapshot(name)


@cache
def _snapshot(hub_id: str) -> Path:
    """Return the cached folder of a Hub model with safetensors, or with pytorch_model*.bin if it has none."""
    import httpx
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        folder = snapshot_download(hub_id, allow_patterns=list(MODEL_FILES), ignore_patterns=list(OTHER_FILES))
        if not list(Path(folder).glob("*.safetensors")):
            folder = snapshot_download(hub_id, allow_patterns="pytorch_model*.bin")
    except (OSError, ValueError, httpx.HTTPError) as error:
        answered, missing = isinstance(error, HfHubHTTPError), "the Hub has no such model, or it needs hf auth login"
        reason = missing if answered else "the Hub cannot be reached"
        reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else reason
        raise UserError(
            f"{hub_id}: no such folder, and no such model in the Hugging Face cache ({reason}); "
            f"download it first with hf download {hub_id}, or give a folder"
        ) from error
    return Path(folder)


def check_family(folder: Path) -> None:
    kind = read_config(folder).get("model_type")
    if kind not in FAMILIES:
        raise UserError(f"{folder}: model_type {kind!r} is none of {', '.join(FAMILIES)}")


def check_model(path_or_id: str | Path, *, chat_template: bool = True) -> ModelFolder:
    """Check config, weights, tokenizer, EOS and chat template (``chat_template=False`` sets ``text_template``)."""
    path = resolve_model(path_or_id)
    config = read_config(path)
    if (path / ADAPTER).is_file():  # transformers would load it on top silently
        raise UserError(f"{path}: holds an adapter ({ADAPTER}); give a folder with it merged (peft: merge_and_unload)")
    check_weights(path)
    tokenizer = load_tokenizer(path, chat_template=chat_template)
    vocabulary = text_config(config).get("vocab_size")
    if isinstance(vocabulary, int) and len(tokenizer) > vocabulary:
        raise UserError(f"{path}: the tokenizer has {len(tokenizer)} tokens, the model only {vocabulary}")
    eos_ids = {tokenizer.eos_token_id, *_further_eos_ids(path)}
    max_positions = text_config(config).get("max_position_embeddings")
    return ModelFolder(path, tokenizer, (*sorted(eos_ids),), max_positions if isinstance(max_positions, int) else None)


def _further_eos_ids(path: Path) -> list[int]:
    """Return the token ids that end a completion by generation_config.json; without that file by config.json."""
    file = path / "generation_config.json"
    file = file if file.is_file() else path / "config.json"
    entry = read_json_object(file, AGAIN).get("eos_token_id")
    ids = entry if isinstance(entry, list) else [] if entry is None else [entry]
    if not all(type(token) is int for token in ids):
        raise UserError(f"{file}: eos_token_id is {entry!r}; give the id of a token, or a list of ids")
    return ids


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the language model's part of a config.json; vision models have it in ``text_config``."""
    part = config.get("text_config")
    return config | part if isinstance(part, dict) else config


def read_config(path: Path) -> dict[str, Any]:
    if not (path / "config.json").is_file():
        raise UserError(f"{path}: no model folder: config.json is missing")
    return read_json_object(path / "config.json", AGAIN)


def head_width(path: Path) -> int | None:
    """Return the width of a model's attention heads; None if its config does not tell."""
    config = text_config(read_config(path))
    width, heads = config.get("head_dim"), config.get("num_attention_heads")
    if not width and isinstance(heads, int) and isinstance(config.get("hidden_size"), int):
        width = config["hidden_size"] // max(heads, 1)
    return width if isinstance(width, int) else None


def check_context(model: ModelFolder, tokens: int, settings: str) -> None:
    """Raise UserError if ``tokens``, set by the keys ``settings``, do not fit into the model's context."""
    if model.max_positions is not None and tokens > model.max_positions:
        raise UserError(f"{settings} = {tokens} tokens, but {model.path} has only {model.max_positions} positions")


def text_template(tokenizer: Any) -> str:
    """Return a chat template that leaves a prompt as its text, after the BOS if the tokenizer adds one."""
    begins = tokenizer.bos_token_id is not None and tokenizer("1")["input_ids"][0] == tokenizer.bos_token_id
    return "{{ bos_token }}" + TEXT if begins else TEXT


def load_tokenizer(path_or_id: str | Path, *, chat_template: bool = True) -> Any:
    """Load the tokenizer of a folder or Hub id. UserError unless it has a chat template and an EOS token."""
    path = resolve_model(path_or_id)
    tokenizer = read_tokenizer(path)
    if not chat_template:
        tokenizer.chat_template = text_template(tokenizer)
    if not tokenizer.chat_template:
        raise UserError(
            f"{path}: the tokenizer has no chat template; choose one with examples/set_chat_template.py model={path} "
            "output=FOLDER chat_template=llama-3.1|plain|qwen2.5|qwen3|text|FILE.jinja, and start from that folder"
        )
    if tokenizer.eos_token_id is None:
        raise UserError(f"{path}: the tokenizer has no EOS token; completions would never end; set eos_token")
    check_renders(path, tokenizer)
    return tokenizer


def check_renders(path: Path, tokenizer: Any) -> None:
    """Raise UserError for a chat template that cannot write a question."""
    try:
        tokenizer.apply_chat_template([{"role": "user", "content": "1"}], tokenize=False, add_generation_prompt=True)
    except Exception as error:  # an expression of a template can raise anything
        raise UserError(
            f"{path}: its chat template does not render a question: {' '.join(str(error).split())[:200]}; "
            "correct it, or choose another one with examples/set_chat_template.py"
        ) from error


def read_tokenizer(path: Path) -> Any:
    """Load the tokenizer of a model folder without checks of its template or EOS. UserError if it does not load."""
    if not any((path / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
        raise UserError(f"{path}: no tokenizer (tokenizer.json, tokenizer_config.json) in the model folder")
    from transformers import AutoConfig, AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(path), local_files_only=True)
    except Exception as error:  # a damaged file can raise anything; tokenizers raises Exception itself
        at_fault = f"{path}/config.json" if (path / "config.json").is_file() else f"{path}: the tokenizer"
        with suppress(Exception):  # it may ask for the class of the model
            at_fault = AutoConfig.from_pretrained(str(path), local_files_only=True) and f"{path}: the tokenizer"
        raise UserError(f"{at_fault} does not load: {' '.join(str(error).split())[:200]}") from error


def load_causal_lm(path: str | Path, **options: Any) -> Any:
    """Load a model in transformers. UserError for a weight that is missing, which would be random, or does not fit."""
    from transformers import AutoModelForCausalLM

    try:
        model, read = AutoModelForCausalLM.from_pretrained(
            str(path), local_files_only=True, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    except (ValueError, ImportError, OSError) as error:
        raise UserError(f"{path}: does not load: {' '.join(str(error).split())[:200]}") from error
    bad = [*read["missing_keys"], *(name for name, *_ in read["mismatched_keys"])]
    if bad:
        raise UserError(f"{path}: {min(bad)} is missing or has another shape than config.json says; {AGAIN}")
    return model


def check_weights(path: Path) -> None:
    """Raise UserError for a folder without weights or output layer, with a damaged index, or with a truncated file."""
    from safetensors import SafetensorError, safe_open

    index = path / "model.safetensors.index.json"
    names = {file.name for file in path.glob("*.safetensors")}
    if index.is_file():
        files = read_json_object(index, AGAIN).get("weight_map")
        if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
            raise UserError(f"{index}: has no weight_map of file names; {AGAIN}")
        names = set(files.values())
    if not names and not list(path.glob("pytorch_model*.bin")):
        raise UserError(f"{path}: no weights (*.safetensors) in the model folder")
    tensors: set[str] = set()
    for file in (path / name for name in sorted(names)):
        if not file.is_file():
            raise UserError(f"{file}: weights are missing although the index names them")
        try:
            with safe_open(str(file), framework="np") as stream:  # compares the header with the file's length
                tensors.update(stream.keys())
        except (SafetensorError, OSError) as error:
            raise UserError(f"{file}: damaged weights (truncated?); {AGAIN}") from error
    config = read_config(path)
    tied = config.get("tie_word_embeddings", config.get("model_type") not in FAMILIES)
    has_head = any(name.startswith("lm_head.") for name in tensors)
    if not tied and not has_head and "model.embed_tokens.weight" in tensors:
        raise UserError(f"{path}: lm_head.weight is missing, which vLLM would make up; {AGAIN}")


# ---- sizes


def shape_of_model(model: str | Path) -> ModelShape:
    """Return the shape of a model folder (its config.json is enough), a config.json, a Hub id or a known name.

    Downloads nothing: for a Hub id it takes the config in the cache, else a file of config/models/.
    """
    path = Path(model).expanduser()
    if path.is_file():
        return shape_of(read_config(path.parent) if path.name == "config.json" else read_yaml_mapping(path), str(path))
    if path.is_dir():
        return shape_of(read_config(path), str(path))
    if HUB_ID.fullmatch(str(model)) and (cached := cached_config(str(model))):
        return shape_of(read_config(cached.parent), str(model))
    files = sorted(KNOWN.glob("*.yaml"))
    for file in files:
        if path.name.startswith(file.stem):
            return shape_of(read_yaml_mapping(file), str(file))
    names = ", ".join(file.stem for file in files)
    raise UserError(f"{model}: no such model here; give model=FOLDER, a config.json, or a known name: {names}")


def shape_of(config: dict[str, Any], source: str) -> ModelShape:
    """Return the shape of the model that a config.json describes, from parameters on ``meta`` tensors."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    flat = text_config(config)
    shape = {key: value for key, value in flat.items() if key not in ("model_type", "quantization_config")}
    try:
        settings = AutoConfig.for_model(flat["model_type"], **shape)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(settings)
        heads = settings.num_attention_heads
        return ModelShape(
            layers=settings.num_hidden_layers,
            width=settings.hidden_size,
            feed_forward=getattr(settings, "intermediate_size", None) or 4 * settings.hidden_size,
            heads=heads,
            kv_heads=getattr(settings, "num_key_value_heads", None) or heads,
            head_width=getattr(settings, "head_dim", None) or settings.hidden_size // heads,
            vocabulary=settings.vocab_size,
            tied=bool(settings.tie_word_embeddings),
            stored_bytes=BYTES.get(str(flat.get("dtype") or flat.get("torch_dtype")).removeprefix("torch."), 4),
            tensors=tuple(parameter.numel() for parameter in model.parameters()),
        )
    except Exception as error:  # a foreign config can raise anything
        raise UserError(f"{source}: not the config of a causal language model that transformers knows") from error


def known_shape(model: Path) -> ModelShape | None:
    """Return the shape of a model; None if its memory cannot be calculated (unknown sizes, or quantised)."""
    if not model.is_dir():
        return shape_of_model(model)
    config = read_config(model)
    if "quantization_config" not in text_config(config):
        with suppress(UserError):
            return shape_of(config, str(model))
    return None


def cached_config(hub_id: str) -> Path | None:
    """Return the config.json of a Hub model in the Hugging Face cache; None if it is not there."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(hub_id, "config.json")
    return Path(path) if isinstance(path, str) else None
