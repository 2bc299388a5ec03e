"""``examples/preflight.py``: does a profile's study fit a machine, step by step, before anything runs?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from compositionality.config.problem_sets import file_settings
from compositionality.config.profile import load_profile
from compositionality.console import new_table
from compositionality.data.create_problems import check
from compositionality.errors import UserError
from compositionality.ranges import Fraction, NonNegativeInt, PositiveFloat, PositiveInt
from compositionality.rollout.forecast.machine import Machine, this_machine
from compositionality.rollout.forecast.need import DISK, GB, GPU, HOST, Need, in_gb
from compositionality.rollout.forecast.shape import ModelShape, cached_config
from compositionality.rollout.model_folder import HUB_ID, read_tokenizer
from compositionality.study.forecast import Planned, completions_at_once, needs_of, pretraining, shape_of_base
from compositionality.train.common.chat_template import OWN, find_template
from compositionality.train.forecast.batch import Tail
from compositionality.train.tiny.corpus import corpus_tokenizer

COLUMNS = 98
PROFILES = ("single", "instruct", "paper")
MACHINES = ((1, 1), (1, 8), (4, 8))
"""Nodes, GPUs of each."""
UNLIMITED = 1e6
SHOWN = ((GPU, "sampling", "GRPO, sampling"), (GPU, "SFT"), (GPU, "GRPO, update"), (HOST,), (DISK, "the study"))
"""Columns of the comparison: the place, and the steps whose most is shown."""


@dataclass
class PreflightSettings:
    """A profile, and the machine to hold it against; what is not given is this machine's."""

    profile: str = "single"  # NAME or NAME/ENGINE
    model: str = ""  # the base model: a folder, a config.json, a Hub id or a known name; empty: the profile's
    study: str = "section41_42"  # one of compositionality/config/study/
    seeds: PositiveInt = 1  # of the study, for its disk
    nodes: PositiveInt = 1  # machines
    gpus: NonNegativeInt | None = None  # on each machine
    gpu_memory_gb: PositiveFloat | None = None  # of each GPU, in 10^9 bytes
    host_memory_gb: PositiveFloat | None = None  # of each machine
    disk_gb: PositiveFloat | None = None  # free, for all runs
    mean_tokens: PositiveFloat = 300.0  # of prompt and completion: mean of the lengths that batches are drawn with
    share_at_limit: Fraction = 0.01  # of rows as long as is allowed
    prompt: bool = True  # show a prompt as the model sees it, where its tokenizer is here
    compare: bool = False  # instead, in Markdown: every GPU profile on 1, 8 and 4 × 8 GPUs of 80 GB


def preflight(settings: PreflightSettings) -> None:
    """Print the table. UserError, after it, for what does not fit."""
    if settings.compare:
        print(comparison())
        return
    plan = planned(settings)
    shape = shape_of_base(plan)
    needs = needs_of(plan, shape)
    console = Console(width=COLUMNS, highlight=False, markup=False)
    console.print(f"{plan.profile}: {shape.parameters / 1e6:,.1f} M parameters on {described(plan.machine)}")
    console.print(table(needs, plan.machine))
    fit = completions_at_once(plan, shape)
    if fit is not None:
        console.print(f"vLLM holds {fit} completions of full length at a time on each GPU.")
    console.print("Calculated from the settings; time is not forecast.")
    if settings.prompt:
        console.print(prompt_shown(plan))
    missing = [need for need in needs if not need.fits(plan.machine)]
    for need in missing:
        console.print(f"{need.step}, {need.place}: {need.lower}")
    if missing:
        names = ", ".join(dict.fromkeys(f"{need.step} ({need.place})" for need in missing))
        raise UserError(f"profile={plan.profile} does not fit {described(plan.machine)}: {names}")


def planned(settings: PreflightSettings) -> Planned:
    """The study and its machine. UserError for a GPU profile without a GPU, here or given."""
    name, _, engine = settings.profile.partition("/")
    profile = load_profile(name, engine).of_study(settings.study)
    here = this_machine(Path("checkpoints", name), settings.nodes)
    gpus = 0 if profile.device == "cpu" else here.gpus if settings.gpus is None else settings.gpus
    memory = settings.gpu_memory_gb * GB if settings.gpu_memory_gb else here.gpu_bytes
    if profile.device == "gpu" and not (gpus and memory):
        raise UserError(f"profile={name} needs GPUs and none is here; give gpus=… gpu_memory_gb=… of the machine meant")
    machine = Machine(
        settings.nodes,
        gpus,
        memory if gpus else None,
        settings.host_memory_gb * GB if settings.host_memory_gb else here.host_bytes,
        settings.disk_gb * GB if settings.disk_gb else here.disk_bytes,
    )
    tail = Tail(settings.mean_tokens, settings.share_at_limit)
    model = settings.model or profile.base_model
    return Planned(f"{name}/{profile.engine}", settings.study, settings.seeds, model, machine, tail)


def table(needs: Sequence[Need], machine: Machine) -> Table:
    """One line for each kind of step and place."""
    found = new_table("step", "of", "needed", "there", "", "largest parts")
    for need in needs:
        there = need.there(machine)
        shown = "none" if there is None else in_gb(there)
        fits = "fits" if need.fits(machine) else "TOO MUCH"
        found.add_row(need.step, need.place, in_gb(need.total), shown, fits, need.largest())
    return found


def comparison() -> str:
    """The GPU profiles × the machines, a row for each pair: the most that any step needs of each place, in GB."""
    lines = [
        "| profile | machine | sampling, a GPU | completions at once | SFT, a GPU | RL, a GPU | a node | disk | fits |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for profile in PROFILES:
        shape: ModelShape | None = None
        for nodes, gpus in MACHINES:
            given = PreflightSettings(
                profile, nodes=nodes, gpus=gpus, gpu_memory_gb=80, host_memory_gb=UNLIMITED, disk_gb=UNLIMITED
            )
            plan = planned(given)
            shape = shape or shape_of_base(plan)
            needs = needs_of(plan, shape)
            found = [most(needs, place, steps) for place, *steps in SHOWN]
            too_much = [need.step for need in needs if not need.fits(plan.machine)]
            fits = "yes" if not too_much else f"no: {', '.join(dict.fromkeys(too_much))}"
            at_once = completions_at_once(plan, shape)
            cells = [profile, described(plan.machine), found[0], str(at_once or ""), *found[1:], fits]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def most(needs: Sequence[Need], place: str, steps: Sequence[str]) -> str:
    """The most that one of ``steps`` (none: any) needs of a place."""
    return in_gb(max(need.total for need in needs if need.place == place and (not steps or need.step in steps)))


def described(machine: Machine) -> str:
    """A machine in words."""
    nodes = f"{machine.nodes} nodes of " if machine.nodes > 1 else ""
    if machine.gpu_bytes is None:
        return f"{nodes}a CPU with {in_gb(machine.host_bytes)}"
    return f"{nodes}{machine.gpus} × {machine.gpu_bytes / GB:g} GB"


def prompt_shown(plan: Planned) -> str:
    """One prompt of the study's problems (of strings, unless it has its own) as the model sees it."""
    tokenizer = tokenizer_of(plan)
    if tokenizer is None:
        return "No prompt to show: the model's tokenizer is not here."
    (name, *_) = (*plan.request.loaded.owns, "string")
    files = file_settings([f"set={name}", f"profile={plan.profile}", "output=-"]).values()
    file = min(files, key=lambda one: getattr(one, "show_definitions", False))  # as RL asks
    task, _, options, _ = check(file)
    problem = next(iter(task.problems(options, file.split, file.seed, file.count)))
    chat = [{"role": "user", "content": problem.prompt}]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    return f"A prompt as the model sees it:\n{text}"


def tokenizer_of(plan: Planned) -> Any:
    """The base model's tokenizer with the profile's chat template; None if it is not here."""
    if not plan.model:
        return corpus_tokenizer(pretraining(plan).mix)
    folder = Path(plan.model).expanduser()
    if HUB_ID.fullmatch(plan.model) and not folder.is_dir() and (cached := cached_config(plan.model)):
        folder = cached.parent
    if not (folder / "tokenizer_config.json").is_file():
        return None
    tokenizer = read_tokenizer(folder)
    tokenizer.chat_template = find_template(plan.loaded.chat_template or OWN, tokenizer, folder)[0]
    return tokenizer
