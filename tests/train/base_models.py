"""Base models of two families, of a few thousand weights: special tokens as theirs, no chat template."""

from pathlib import Path

LLAMA = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
END_OF_TEXT = {LLAMA[0]: "<|end_of_text|>", QWEN[0]: "<|endoftext|>"}


def make_base(folder: Path, specials: list[str]) -> Path:
    """A random model without a chat template; its tokenizer knows single bytes and a family's special tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    core.pre_tokenizer, core.decoder = ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
    core.add_special_tokens(specials)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=END_OF_TEXT[specials[0]])
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=512, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
