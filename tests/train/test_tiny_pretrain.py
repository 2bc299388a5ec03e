"""Pretraining: kill it and it goes on to the same bytes; one process or two, the same model; it refuses nonsense."""

import json
import os
import shutil
import string
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from bash_runs import warm_python
from held import held, kill_once
from offline_wandb import about, artifacts, history
from test_tiny_corpus import SINGLE

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of, load_profile, profile_names
from compositionality.data.artefact import read_manifest
from compositionality.report.send_runs import SendSettings, send_runs
from compositionality.tasks.string.clean import StringGenerator, StringOptions
from compositionality.train.dist import join_mesh
from compositionality.train.metrics import read_metrics
from compositionality.train.run_folder import latest_step, run_path
from compositionality.train.tiny import pretrain as module
from compositionality.train.tiny.corpus import Corpus, corpus_tokenizer
from compositionality.train.tiny.model import render
from compositionality.train.tiny.pretrain import pretrain
from compositionality.train.tiny.settings import PretrainSettings

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("steps=40", "packing.rows=2", "packing.length=96", "model.layers=1", "save_every=4", "log_every=3", "warmup=5")
KEPT = ["metrics.jsonl", "recipe.json", "run.json", "wandb.id"]  # of a finished run
TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")


def settings(out, *more):
    return parse(PretrainSettings, [f"output={out}", *SHORT, *more])


PROGRAM = ROOT / "examples/pretrain_tiny.py"


def command(out, *processes, program=(str(PROGRAM),), python=""):
    return [python or warm_python(), *processes, *program, f"output={out}", *SHORT]


def run(words):
    own = {**os.environ, "PYTHON_EXEC": words[0]}  # of torchrun's ranks
    return subprocess.run(words, cwd=ROOT, env=own, capture_output=True, text=True, check=True, timeout=900).stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole") / "base"
    pretrain(settings(out))
    return out


@pytest.fixture(scope="module")
def whole_by_two(tmp_path_factory):
    """The same on two processes."""
    out = tmp_path_factory.mktemp("whole_by_two") / "base"
    run(command(out, *TWO))
    return out


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def kill_after_a_checkpoint(out, *processes, **variables):
    """SIGKILL the command once a checkpoint is complete, before the last one; its ranks are gone too."""
    words = command(out, *processes, program=held("checkpoint", 36, PROGRAM), python=sys.executable)
    kill_once(lambda: latest_step(run_path(out) / "steps"), words, out.with_name("log"), {**os.environ, **variables})
    assert not out.exists()


@pytest.fixture
def service():
    """The wandb process of a program that starts others, as they find it in their environment."""
    code = "import os, wandb; wandb.setup(); print(os.environ['WANDB_SERVICE'], flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        yield process.stdout.readline().strip()
        process.communicate("\n")


@pytest.mark.slow
@pytest.mark.full
def test_p07_killed_and_started_again_ends_with_the_same_bytes(whole, tmp_path, service):
    """And in wandb both are one run, a real offline one: its files outlast the run folder, and its end fills no log.

    Also where what starts it has a wandb process: in that the run of a killed process would go on.
    """
    out, offline = tmp_path / "base", {"WANDB_MODE": "offline", "WANDB_SERVICE": service}
    kill_after_a_checkpoint(out, **offline)
    done = subprocess.run(
        command(out, python=sys.executable),
        cwd=ROOT,
        env={**os.environ, **offline},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "going on from step" in done.stdout
    assert files(out) == files(whole)
    assert sorted(path.name for path in run_path(out).iterdir()) == KEPT
    kept = list(tmp_path.glob("base.wandb/wandb/offline-run-*"))
    assert len(kept) == 2
    assert len({path.name.rpartition("-")[2] for path in kept}) == 1
    assert "base" in about(max(kept)).display_name  # the killed one perhaps holds nothing
    told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("wandb:")]
    assert len(told) <= 3, "only where the run's files are"


def assert_close(run, other):
    from safetensors.torch import load_file

    weights, others = (load_file(out / "model.safetensors") for out in (run, other))
    assert weights.keys() == others.keys()
    for name, weight in weights.items():
        assert (weight - others[name]).abs().max() < 2e-5, name


@pytest.mark.slow
def test_p07_two_processes_that_were_killed_go_on_as_two_or_as_one(whole, whole_by_two, tmp_path, capsys):
    out, alone = tmp_path / "base", tmp_path / "alone"
    kill_after_a_checkpoint(out, *TWO)
    shutil.copytree(run_path(out), run_path(alone))
    assert "going on from step" in run(command(out, *TWO))
    assert files(out) == files(whole_by_two)
    assert sorted(path.name for path in run_path(out).iterdir()) == KEPT
    pretrain(settings(alone))
    assert "going on from step" in capsys.readouterr().out
    assert_close(whole, alone)


@pytest.mark.slow
def test_p10_two_processes_give_the_model_of_one(whole, whole_by_two):
    assert_close(whole, whole_by_two)


def test_p13_a_model_of_other_threads_is_already_there(whole, capsys):
    """Another setting is refused: test_step_contract.py."""
    assert json.loads((whole / "config.json").read_text())["architectures"] == ["LlamaForCausalLM"]  # for vLLM and verl
    pretrain(settings(whole, "threads=2"))
    assert capsys.readouterr().out == f"{whole} is already there\n"


def test_a_finished_run_is_sent_to_wandb_afterwards(whole, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    send_runs(SendSettings([str(whole.parent)]))
    (sent,) = whole.parent.glob("base.wandb/wandb/offline-run-*")
    rows = [row["train/loss"] for row in history(sent) if "train/loss" in row]
    assert rows == [row["train/loss"] for row in read_metrics(run_path(whole) / "metrics.jsonl")]
    assert [artifact.type for artifact in artifacts(sent)] == ["model"]
    assert about(sent).job_type == "pretrain"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_p11_a_short_pretraining_learns_the_targets_by_name(tmp_path):
    """About one minute, half of the text being calls by name: the whole response on single calls, greedy."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "base"
    words = ["steps=800", "optimizer=muon", "mix.target_calls=0.5", "threads=1"]
    chosen = parse(PretrainSettings, [f"output={out}", *words])
    pretrain(chosen)
    tokenizer, model = AutoTokenizer.from_pretrained(out), AutoModelForCausalLM.from_pretrained(out)
    corpus, rng, right = Corpus(chosen.mix, chosen.drop), Random("unseen"), 0
    for _ in range(200):
        prompt, response = render(*corpus.single(rng, corpus.targets))
        given = torch.tensor([tokenizer(prompt)["input_ids"]])
        wanted = tokenizer(response)["input_ids"]
        made = model.generate(given, max_new_tokens=len(wanted), do_sample=False)[0, given.shape[1] :]
        right += made.tolist() == wanted
    assert right / 200 > 0.4


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


def test_problems_of_the_profile_are_written_with_the_text_s_tokens():
    tokenizer, task = corpus_tokenizer(SINGLE), StringGenerator(OPTIONS)
    for index in range(200):
        problem = task.problem("test", 2026, index)
        ids = tokenizer(problem.prompt)["input_ids"]
        assert tokenizer.decode(ids) == problem.prompt
        assert len(ids) <= 64
        calls = task.item("test", 2026, index).program.calls
        assert ("[" in problem.prompt) == any(call.parameter is not None for call in calls)
