"""A random small model to answer with."""

from pathlib import Path


def make_tiny_model(folder: Path, seed: int = 0) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    specials = ["<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"]
    vocabulary = {token: i for i, token in enumerate(specials + sorted(ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(specials)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|end|>", pad_token="<|pad|>")
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}"
        "{% if m['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=None, eos_token_id=3, pad_token_id=0,
        tie_word_embeddings=True,
    )  # fmt: skip
    torch.set_num_threads(1)  # tiny matrices: more threads only wait for one another
    torch.manual_seed(seed)
    LlamaForCausalLM(config).float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
