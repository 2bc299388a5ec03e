"""The text of the one-GPU profile: parameters in brackets, all letters, eight levels. It trains, its problems fit."""

import string

import pytest
from test_tiny_corpus import SINGLE

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of, load_profile, profile_names
from compositionality.data.artefact import read_manifest
from compositionality.errors import UserError
from compositionality.tasks.string.clean import StringGenerator, StringOptions
from compositionality.train.dist import join_mesh
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.grpo_settings import check_settings as check_grpo
from compositionality.train.sft_settings import SftSettings
from compositionality.train.sft_settings import check_settings as check_sft
from compositionality.train.tiny import pretrain as module
from compositionality.train.tiny.corpus import corpus_tokenizer
from compositionality.train.tiny.pretrain import pretrain
from compositionality.train.tiny.settings import PretrainSettings

OPTIONS = StringOptions(
    functions="all", levels=tuple(range(1, 9)), style="compact", alphabet=string.ascii_lowercase, max_length=24
)
EVEN = 6.1  # the loss of a model that gives each of its 460 tokens the same chance


GPU_PROFILES = [name for name in profile_names() if load_profile(name).device == "gpu"]
SMALL = ("steps=3", "warmup=1", "packing.rows=2", "packing.length=128", "model.layers=1", "save_every=2", "log_every=1")


@pytest.mark.parametrize("name", [name for name in GPU_PROFILES if not load_profile(name).base_model])
def test_the_pretraining_of_a_gpu_profile_takes_its_steps(name, tmp_path, monkeypatch):
    """Its own precision and mesh, in miniature: one rank of FSDP on gloo, as one GPU has it on NCCL."""
    layers = layers_of(name, "pretrain_tiny", ["section41_42/stage0_pretrain"])
    settings = parse(PretrainSettings, [f"output={tmp_path / 'base'}", "run.device=gpu", *SMALL], layers)
    assert (settings.dtype, settings.mesh.shard) == ("bfloat16", True)
    monkeypatch.setattr(module, "start_processes", lambda mesh, _: join_mesh(mesh, 1, on_gpu=False))
    pretrain(settings)
    assert read_manifest(tmp_path / "base").facts["loss"] < 1.2 * EVEN


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run.device=gpu", "mesh.shard=false"), "dtype=bfloat16 needs mesh.shard=true"),
        (("run.device=cpu", "mesh.shard=true"), "dtype=bfloat16 needs a GPU or several processes"),
        (("run.device=gpu", "mesh.shard=true", "mesh.tensor=2", "run.processes=3"), "does not divide the 3 processes"),
    ],
)
def test_p18_a_mesh_that_cannot_compute_in_bfloat16_is_one_line(words, said, tmp_path):
    trained = ("model.path=m", "trainer.output=o", "model.dtype=bfloat16")
    for schema, own, check in (
        (PretrainSettings, (f"output={tmp_path}", "dtype=bfloat16"), module.check),
        (SftSettings, ("data.train_files=[x]", *trained), check_sft),
        (GrpoSettings, ("data.train_files=[x]", *trained), check_grpo),
    ):
        with pytest.raises(UserError, match=said):
            check(parse(schema, [*own, *words]))


def test_problems_of_the_profile_are_written_with_the_text_s_tokens():
    tokenizer, task = corpus_tokenizer(SINGLE), StringGenerator(OPTIONS)
    for index in range(200):
        problem = task.problem("test", 2026, index)
        ids = tokenizer(problem.prompt)["input_ids"]
        assert tokenizer.decode(ids) == problem.prompt
        assert len(ids) <= 64
        assert ("[" in problem.prompt) == any(op.parameter is not None for op in task.item("test", 2026, index).chain)
