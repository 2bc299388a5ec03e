"""The tiny model's tokenizer: one token per character, plus whole tokens for the names of functions.

Byte-level BPE whose alphabet is printable ASCII, newline and the bytes of « and ». Its only merges make « and »
one token each, because a bracket is one character of a string. Everything else that is longer than a character
(``func`` and ``_0`` …, or whole names ``func_0`` …; whole names ``other_30`` …; the names of definitions) is an added
token, matched leftmost and longest.
Characters outside that alphabet vanish on encoding.
"""

from collections.abc import Sequence
from typing import Any

from compositionality.tasks.string.functions import alias_of

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
