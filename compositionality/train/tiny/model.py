"""The tiny model: a Llama from a config, in Hugging Face format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from compositionality.memory import ModelShape
from compositionality.ranges import PositiveFloat, PositiveInt
from compositionality.rollout.model_folder import shape_of
from compositionality.tasks.string.functions import alias_of


@dataclass
class TinyConfig:
    """Shape of the model. Four heads of 16 learn better here than two of 32, and faster than four of 32.

    vLLM's CPU attention takes no head narrower than 32: a model for the verl engine is made with ``head_width=32``.
    """

    layers: PositiveInt = 3  # blocks
    width: PositiveInt = 64  # of the residual stream
    heads: PositiveInt = 4  # of the attention
    head_width: Annotated[int, Ge(2)] = 16  # of a head; vLLM on a CPU takes 32
    feed_forward: PositiveInt = 176  # width of the MLP
    rope_theta: PositiveFloat = 1000.0  # base of the rotary embedding


def build_model(shape: TinyConfig, tokenizer: Any, seed: int) -> Any:
    """Return a freshly initialised float32 LlamaForCausalLM whose vocabulary is exactly the tokenizer's."""
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **_sizes(shape, len(tokenizer)),
        max_position_embeddings=MAX_LENGTH,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    model = LlamaForCausalLM(config).to(torch.float32)
    _initialise(model, seed)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    return model


def tiny_shape(shape: TinyConfig, vocabulary: int) -> ModelShape:
    """Return the sizes of the model that ``build_model`` would make."""
    return shape_of({"model_type": "llama", "dtype": "float32", **_sizes(shape, vocabulary)}, "model")


def _sizes(shape: TinyConfig, vocabulary: int) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head_width,
        "tie_word_embeddings": False,
    }


def _initialise(model: Any, seed: int) -> None:
    """Scale by fan-in, half as much where a block writes to the residual stream; transformers' 0.02 learns slowly."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if weight.dim() != 2:
            continue
        spread = 0.5 if "embed_tokens" in name else weight.shape[1] ** -0.5
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            spread *= 0.5
        torch.nn.init.normal_(weight, std=spread, generator=generator)


# ---- the tokenizer

PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
SPECIALS = (PAD, END, USER, ASSISTANT)
NAME, NUMBERS = "func", 64
BRACKETS = "«»"
MAX_LENGTH = 1024

# Every message ends by itself what it begins, so a longer chat always continues the text of a shorter one.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}{{- '<|assistant|>' + message['content'] + '<|end|>' -}}"
    "{%- else -%}{{- '<|user|>' + message['content'] -}}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def name_tokens(count: int = NUMBERS, *, whole: bool = False) -> list[str]:
    """Return tokens for the names of functions 0 to ``count - 1``: ``func`` and its numbers, ``other_30`` … as wholes.

    In two tokens ``other_3`` could be written, and RL found it: a name of the study's under which to compose.
    ``whole``: all names, for strings that may hold ``_`` before a digit, which else would be the number of a function.
    """
    if whole:
        return [*map(alias_of, range(count))]
    return [NAME, *(alias_of(number).removeprefix(NAME) for number in range(count))]


def build_tokenizer(words: Sequence[str], names: Sequence[str] = ()) -> Any:
    """Return a PreTrainedTokenizerFast in which each of ``words`` (definition names) and ``names`` is one token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet, merges = _alphabet()
    backend = Tokenizer(models.BPE(vocab={text: row for row, text in enumerate(alphabet)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIALS])
    added = dict.fromkeys([*(names or name_tokens()), *words])
    backend.add_tokens([AddedToken(text, normalized=False) for text in added])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[USER, ASSISTANT],
        model_max_length=MAX_LENGTH,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def render(prompt: str, response: str) -> tuple[str, str]:
    """Return one exchange rendered by the chat template, as (prompt, response)."""
    return f"{USER}{prompt}{ASSISTANT}", f"{response}{END}"


def _alphabet() -> tuple[list[str], list[tuple[str, str]]]:
    """Return the symbols of the byte-level vocabulary and its merges (GPT-2's printable stand-ins for bytes)."""
    from tokenizers import pre_tokenizers

    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ascii_text = "".join(chr(code) for code in range(32, 127)) + "\n"
    single = splitter.pre_tokenize_str(ascii_text)[0][0]
    pairs = [splitter.pre_tokenize_str(bracket)[0][0] for bracket in BRACKETS]
    symbols = dict.fromkeys([*single, *"".join(pairs), *pairs])
    return list(symbols), [(pair[0], pair[1]) for pair in pairs]
