"""Pretraining a small model from scratch, on one process or several; the text is generated on the fly.

Progress is saved every ``save_every`` steps beside the result, in ``OUTPUT.run``. The same command continues there, and
ends with the same bytes as a run that was never stopped, on the same machine with the same number of processes and
threads. Of a finished run, its metrics and settings stay there.
"""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from compositionality.data.artefact import exclusive, remove
from compositionality.train.dist import on_first_rank, start_processes
from compositionality.train.muon import Muon
from compositionality.train.policy import shard
from compositionality.train.run_folder import RECIPE, is_finished, latest_step, resume, run_path
from compositionality.train.sft import Fit
from compositionality.train.tiny.batches import PackedBatches
from compositionality.train.tiny.corpus import Corpus, corpus_tokenizer
from compositionality.train.tiny.model import build_model
from compositionality.train.tiny.settings import PretrainSettings, check, optim, trainer


def pretrain(settings: PretrainSettings) -> None:
    """Make the base model at ``settings.output`` unless it is already there.

    No ``artefact.make``, which begins anew after a kill: checkpoints lie in a run folder until the model is there.
    """
    recipe = check(settings)
    mesh = start_processes(settings.mesh, settings.threads)
    out, run = Path(settings.output), run_path(Path(settings.output))
    if on_first_rank(lambda: is_finished(out, recipe, force=settings.force)):
        return
    with ExitStack() as stack:
        on_first_rank(lambda: stack.enter_context(exclusive(run)))
        start = on_first_rank(lambda: resume(run, recipe, force=settings.force or is_over(run)))
        tokenizer, corpus = corpus_tokenizer(settings.mix), Corpus(settings.mix, settings.drop)
        batches = PackedBatches(corpus, tokenizer, settings.packing, settings.seed, settings.steps, settings.workers)
        policy = shard(build_model(settings.model, tokenizer, settings.seed), mesh, settings.mesh, settings.dtype)
        group = mesh["data"].get_group() if mesh is not None else None
        optimizer = Muon(policy, optim(settings), group) if settings.optimizer == "muon" else None
        fit = Fit(policy, tokenizer, optim(settings), trainer(settings), mesh, optimizer)
        loss = fit.run(batches, run, start, "pretrain", asdict(settings), result=out)
        fit.publish(out, recipe, {"steps": settings.steps, "loss": round(loss, 4)})
        on_first_rank(lambda: remove(run / "steps"))


def is_over(run: Path) -> bool:
    """Return whether this is the folder of a run that has ended, or has nothing to go on from."""
    return (run / RECIPE).is_file() and not latest_step(run / "steps")
