"""The verbs of the command ``compositionality``: the functions of each, and its help (verbs.md).

Functions are named, not imported, so that the command and the light verbs start without torch.
"""

import re
from collections.abc import Callable
from functools import cache
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

SENT = "report.dashboard.send_made"
HELP = Path(__file__).with_suffix(".md")


class Verb(NamedTuple):
    """Names of functions below the package. ``step`` takes the verb's settings, the dataclass of its keys."""

    step: str
    check: str = ""  # checks the settings in a dry run
    show: str = ""  # returns the text for ``--cfg``
    main: str = ""  # reads the command line itself, if its words decide which settings there are
    sent: str = ""  # sends the result to wandb, if that is set up
    follows: bool = False  # makes a result anew when its inputs change: a dry run cannot know what it will be


class EntryPoint(NamedTuple):
    schema: type[Any]
    step: Callable[[Any], object]
    check: Callable[[Any], object] | None
    show: Callable[[Any], str] | None


VERBS = {
    "audit_data": Verb("data.audit.audit_data", "data.audit.check", follows=True),
    "claims": Verb("evaluate.claims.run.decide_claims", "evaluate.claims.run.check", sent=SENT, follows=True),
    "collect_rollouts": Verb("rollout.collect.collect", "rollout.collect.check", sent=SENT),
    "create_problems": Verb(
        "data.create_problems.create_problems", "data.create_problems.check", main="config.problem_sets.main"
    ),
    "draw_figure": Verb("report.draw.draw_figure", "report.draw.check", follows=True),
    "evaluate": Verb("evaluate.collect.evaluate", "evaluate.collect.check", sent=SENT, follows=True),
    "export_checkpoint": Verb("train.verl.export.export_step", "train.verl.export.check"),
    "failure_modes": Verb("evaluate.failures.find_failures", "evaluate.failures.check", sent=SENT, follows=True),
    "filter_problems": Verb("rft.filter.filter_problems", "rft.filter.check_problems"),
    "filter_rollouts": Verb("rft.filter.filter_rollouts", "rft.filter.check_rollouts"),
    "fit_scaling": Verb("analysis.scaling.fit_scaling", "analysis.scaling.check", sent=SENT, follows=True),
    "gpu_check": Verb("report.gpu_check.gpu_check", "report.gpu_check.check"),
    "influence": Verb("analysis.influence.measure_influence", "analysis.influence.check", sent=SENT, follows=True),
    "make_domain_sample": Verb("domains.sample.make_domain_sample", "domains.sample.check"),
    "merge_data": Verb("rft.tables.merge_data", "rft.tables.check_merge"),
    "passk": Verb("evaluate.passk.passk", "evaluate.passk.check", sent=SENT, follows=True),
    "preflight": Verb("study.preflight.preflight", "study.preflight.forecast_of"),
    "prepare_guru": Verb("domains.guru.prepare_guru", "domains.guru.check"),
    "pretrain_tiny": Verb("train.engines.pretrain_tiny", "train.tiny.settings.check"),
    "publish": Verb("report.publish.publish", "report.publish.check"),
    "report": Verb("report.page.build.report", "report.page.build.check_inputs", follows=True),
    "run_study": Verb("study.run.run_study", main="study.run.main"),
    "set_chat_template": Verb("train.chat_template.set_chat_template", "train.chat_template.check"),
    "split_chunks": Verb("rft.tables.split_chunks", "rft.tables.check_chunks"),
    "summarise_seeds": Verb("evaluate.seeds.summarise", "evaluate.seeds.check", follows=True),
    "train_grpo": Verb("train.engines.train_grpo", show="train.engines.show_verl"),
    "train_sft": Verb("train.engines.train_sft", show="train.engines.show_verl"),
    "wandb": Verb("report.send_runs.send_runs", "report.send_runs.check", main="report.send_runs.main"),
    "write_record": Verb("report.record.write_record", "report.record.check"),
    "write_solutions": Verb("rft.solutions.write_solutions", "rft.solutions.check"),
}
RESULTS = {
    "draw_figure": (".png",), "evaluate": ("/results.parquet", "/training.json"), "passk": ("/results.parquet",),
    "failure_modes": ("/labels.parquet", "/results.parquet"), "influence": ("/influence.parquet",),
    "fit_scaling": ("/scaling_points.csv", "/scaling.json"), "train_grpo": ("/final",), "train_sft": ("/final",),
}  # fmt: skip
"""Suffixes of a verb's output path: what has a manifest, if not the output itself; the last exists when it is done."""
MADE_BY = {"claims": "decide_claims", "evaluate": "evaluate_accuracy", "failure_modes": "find_failures"}
MADE_BY |= {"train_grpo": "train_grpo_single", "train_sft": "sft"}  # by engine=single
"""The step in these manifests, if it is not the verb."""


def entry_point(name: str) -> EntryPoint:
    step, check, show = map(function, VERBS[name][:3])
    schema = next(iter(signature(step).parameters.values())).annotation
    return EntryPoint(schema, step, check, show)


def function(path: str) -> Any:
    """Import a function that a row of VERBS names; None for an empty name."""
    return resolve_name(f"compositionality.{path}") if path else None


@cache
def helps() -> dict[str, str]:
    """Return the help of every verb; its first line is a phrase."""
    _, *parts = re.split(r"^## (\w+)\n", HELP.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}
