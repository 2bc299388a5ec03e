"""The pretraining loop: kill it and it goes on to the same bytes; it refuses nonsense; it learns."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from compositionality.config.cli import parse
from compositionality.errors import UserError
from compositionality.train.tiny.corpus import Corpus
from compositionality.train.tiny.loop import learning_rate_at
from compositionality.train.tiny.pretrain import PretrainSettings, pretrain, progress_path
from compositionality.train.tiny.tokenizer import render

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("steps=20", "packing.rows=2", "packing.length=96", "model.layers=1", "threads=1", "save_every=4", "warmup=5")


def settings(out, *more):
    return parse(PretrainSettings, [f"output={out}", *SHORT, *more])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole") / "base"
    pretrain(settings(out))
    return out


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def test_p07_killed_and_started_again_ends_with_the_same_bytes(whole, tmp_path):
    out = tmp_path / "base"
    command = [sys.executable, ROOT / "examples/pretrain_tiny.py", f"output={out}", *SHORT]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not progress_path(out).exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"
    assert not out.exists()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "continuing at step" in done.stdout
    assert files(out) == files(whole)
    assert not progress_path(out).exists()


def test_a_second_call_does_nothing_and_other_settings_are_refused(whole, capsys):
    pretrain(settings(whole, "threads=2"))
    assert capsys.readouterr().out == f"{whole} is already there\n"
    with pytest.raises(UserError, match="learning_rate"):
        pretrain(settings(whole, "learning_rate=0.1"))


def test_progress_of_another_recipe_is_not_taken(whole, tmp_path, monkeypatch):
    import compositionality.train.tiny.pretrain as module

    def stop(*_):
        raise KeyboardInterrupt

    out = tmp_path / "base"
    monkeypatch.setattr(module, "new_artefact", stop)
    with pytest.raises(KeyboardInterrupt):
        pretrain(settings(out, "seed=1"))
    monkeypatch.undo()
    assert progress_path(out).exists()
    pretrain(settings(out))
    assert files(out) == files(whole)


def test_a_loss_that_is_no_number_stops_the_run(tmp_path):
    with pytest.raises(UserError, match="lower learning_rate"):
        pretrain(settings(tmp_path / "base", "learning_rate=1e30", "warmup=1"))
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("bad", ["steps=0", "threads=0", "save_every=0", "mix.echo=1.0", "packing.length=20"])
def test_nonsense_is_refused(bad, tmp_path):
    with pytest.raises(UserError):
        pretrain(settings(tmp_path / "base", bad))


def test_learning_rate_warms_up_and_falls():
    rates = [learning_rate_at(step, 100, 1.0, 10) for step in range(100)]
    assert rates.index(max(rates)) == 9
    assert rates[0] < 0.11
    assert rates[99] < 0.05
    assert rates[9:] == sorted(rates[9:], reverse=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_p11_a_short_pretraining_learns_to_read_definitions(tmp_path):
    """About one minute: the right next token on visible single calls, whole responses, greedy."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "base"
    chosen = parse(PretrainSettings, [f"output={out}", "steps=1000", "mix.prior_chain=0.05", "threads=1"])
    pretrain(chosen)
    tokenizer, model = AutoTokenizer.from_pretrained(out), AutoModelForCausalLM.from_pretrained(out)
    corpus, rng, right = Corpus(chosen.mix, chosen.drop), Random("unseen"), 0
    for _ in range(200):
        prompt, response = render(*corpus.single(rng, corpus.bound_targets, show_definitions=True))
        given = torch.tensor([tokenizer(prompt)["input_ids"]])
        wanted = tokenizer(response)["input_ids"]
        made = model.generate(given, max_new_tokens=len(wanted), do_sample=False)[0, given.shape[1] :]
        right += made.tolist() == wanted
    assert right / 200 > 0.3
