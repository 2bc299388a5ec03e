"""The text of the one-GPU profile: parameters in brackets, all letters, eight levels. It trains, its problems fit."""

import string

from compositionality.data.artefact import read_manifest
from compositionality.tasks.string.clean import StringGenerator
from compositionality.tasks.string.options import StringOptions
from compositionality.train.tiny.corpus import Mix, corpus_tokenizer
from compositionality.train.tiny.model import TinyConfig
from compositionality.train.tiny.pretrain import Packing, PretrainSettings, pretrain

MIX = Mix(
    deepest=8,
    letters=string.ascii_lowercase,
    longest_input=10,
    max_length=24,
    prior_functions=150,
    frozen_parameters=False,
)
OPTIONS = StringOptions(
    functions="all", levels=tuple(range(1, 9)), style="compact", alphabet=string.ascii_lowercase, max_length=24
)
EVEN = 6.1  # the loss of a model that gives each of its 460 tokens the same chance


def test_a_small_model_starts_to_learn_it(tmp_path):
    settings = PretrainSettings(output=str(tmp_path / "base"), steps=100, warmup=10, drop=[], mix=MIX, log_every=50)
    settings.packing, settings.model = Packing(rows=4, length=512), TinyConfig(layers=1, width=32, feed_forward=64)
    pretrain(settings)
    assert read_manifest(tmp_path / "base").facts["loss"] < 0.8 * EVEN


def test_problems_of_the_profile_are_written_with_the_text_s_tokens():
    tokenizer, task = corpus_tokenizer(MIX), StringGenerator(OPTIONS)
    for index in range(200):
        problem = task.problem("test", 2026, index)
        ids = tokenizer(problem.prompt)["input_ids"]
        assert tokenizer.decode(ids) == problem.prompt
        assert len(ids) <= 64
        assert ("[" in problem.prompt) == any(op.parameter is not None for op in task.item("test", 2026, index).chain)
