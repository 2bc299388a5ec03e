"""Base models of two families, of a few thousand weights: special tokens as theirs, no chat template.

And two that reason: their templates open a thought in the prompt and leave it out of what is past.
"""

from pathlib import Path

LLAMA = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
DEEPSEEK = [
    *(
        f"<\uff5c{name}\uff5c>"
        for name in ("begin\u2581of\u2581sentence", "end\u2581of\u2581sentence", "User", "Assistant")
    ),
    *("<think>", "</think>"),
]
R1_DISTILL = (
    f"{{{{ '{DEEPSEEK[0]}' }}}}{{% for m in messages %}}{{% if m.role == 'assistant' %}}"
    f"{{{{ '{DEEPSEEK[3]}' + m.content.split('</think>')[-1] + '{DEEPSEEK[1]}' }}}}"
    f"{{% else %}}{{{{ ('{DEEPSEEK[2]}' if m.role == 'user' else '') + m.content }}}}{{% endif %}}{{% endfor %}}"
    f"{{% if add_generation_prompt %}}{{{{ '{DEEPSEEK[3]}<think>\\n' }}}}{{% endif %}}"
)
"""As DeepSeek-R1-Distill's is described."""
QWQ = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
    "{{ m.content.split('</think>')[-1].lstrip('\\n') if m.role == 'assistant' else m.content }}{{ '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"
)
"""As QwQ-32B's is described."""
REASONING = {"r1-distill": (DEEPSEEK, R1_DISTILL, DEEPSEEK[1]), "qwq": (QWEN, QWQ, "<|im_end|>")}
"""Special tokens, template, and the token that ends an answer."""
END_OF_TEXT = {LLAMA[0]: "<|end_of_text|>", QWEN[0]: "<|endoftext|>"}


def make_reasoning(folder: Path, name: str) -> Path:
    """A random model with one of the templates of ``REASONING``."""
    specials, template, eos = REASONING[name]
    return make_base(folder, specials, template, eos)


def make_base(folder: Path, specials: list[str], template: str | None = None, eos: str | None = None) -> Path:
    """A random model, without a chat template unless it is given; its tokenizer knows single bytes and ``specials``."""
    import torch
    from tokenizers import Tokenizer, decoders, models
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    core.pre_tokenizer, core.decoder = ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
    core.add_special_tokens(specials)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=eos or END_OF_TEXT[specials[0]])
    tokenizer.chat_template = template
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=512, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
