"""``examples/preflight.py``: check, step by step, whether a profile's study fits a machine, before anything runs."""

import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any

from compositionality.config.cli import parse
from compositionality.config.problem_sets import file_settings
from compositionality.config.profile import Profile, layers_of, load_profile
from compositionality.console import new_console, new_table
from compositionality.data.create_problems import draw_problems
from compositionality.errors import UserError
from compositionality.memory import (
    DISK,
    GB,
    GPU,
    HOST,
    TOKEN_TEXT,
    Machine,
    ModelShape,
    Need,
    in_gb,
    run_folder,
    this_machine,
)
from compositionality.ranges import Fraction, NonNegativeInt, PositiveFloat, PositiveInt
from compositionality.rollout.engines.factory import sampling_needs, vllm_of
from compositionality.rollout.model_folder import HUB_ID, cached_config, read_tokenizer, shape_of_model
from compositionality.rollout.settings import CollectSettings
from compositionality.study.model import Replicate, Request, check_scripts
from compositionality.study.plan import plan
from compositionality.train.chat_template import OWN, find_template
from compositionality.train.engines import settle_attention
from compositionality.train.memory import Ranks, kept_checkpoints, pretraining_needs, training_needs
from compositionality.train.tiny.corpus import corpus_tokenizer
from compositionality.train.tiny.model import tiny_shape

COLUMNS = 98
"""Largest width of the table."""
PROFILES = ("single", "instruct", "paper")
MACHINES = ((1, 1), (1, 8), (4, 8))
"""Nodes, GPUs of each."""
UNLIMITED = 1e6
SHOWN = ((GPU, "sampling", "GRPO, sampling"), (GPU, "SFT"), (GPU, "GRPO, update"), (HOST,), (DISK, "the study"))
"""Columns of the comparison: the place, and the steps whose largest need is shown."""


@dataclass
class PreflightSettings:
    """A profile, and the machine to check it against; by default this machine."""

    profile: str = ""  # NAME or NAME/ENGINE; empty: PROFILE, else single
    model: str = ""  # a base model's folder, config.json, Hub id or known name; empty: BASE_MODEL, else the profile's
    study: str = "section41_42"  # one of compositionality/config/study/
    seeds: PositiveInt = 1  # number of seeds, for the disk
    nodes: PositiveInt = 1  # number of machines
    gpus: NonNegativeInt | None = None  # GPUs per machine
    gpu_memory_gb: PositiveFloat | None = None  # memory per GPU, in 10^9 bytes
    host_memory_gb: PositiveFloat | None = None  # memory per machine
    disk_gb: PositiveFloat | None = None  # free disk space for all runs
    mean_tokens: PositiveFloat = 300.0  # assumed mean length of prompt and completion
    share_at_limit: Fraction = 0.01  # assumed share of rows at the limit of tokens
    prompt: bool = True  # show a prompt as the model sees it, if its tokenizer is on this machine
    compare: bool = False  # instead, in Markdown: every GPU profile on 1, 8 and 4 × 8 GPUs of 80 GB


@dataclass(frozen=True)
class Forecast:
    """The needs of one replicate of a study on a machine."""

    settings: PreflightSettings
    profile: Profile
    machine: Machine

    @property
    def name(self) -> str:
        """The profile as NAME/ENGINE."""
        return f"{self.settings.profile.partition('/')[0]}/{self.profile.engine}"

    @property
    def model(self) -> str:
        """The base model; "" if the study pretrains one."""
        return self.settings.model or self.profile.base_model

    @cached_property
    def request(self) -> Request:
        """A request for one replicate with all steps that a report needs."""
        place, template = Replicate("study", 0), "" if self.model else "own"
        return Request(
            self.settings.study, self.name, (place,), report=True, base_model=self.model, chat_template=template
        )

    @cached_property
    def steps(self) -> dict[str, list[Any]]:
        """The settings of its steps by entry point, in the plan's order."""
        settings: dict[str, list[Any]] = {}
        for step in plan(self.request):
            settings.setdefault(step.entry_point, []).append(step.settings)
        return settings

    @cached_property
    def shape(self) -> ModelShape:
        """The shape of the model that the study starts from."""
        if self.model:
            return shape_of_model(self.model)
        pretraining = self.steps["pretrain_tiny"][0]
        return tiny_shape(pretraining.model, len(corpus_tokenizer(pretraining.mix)))

    @cached_property
    def collecting(self) -> CollectSettings:
        """The settings for rollouts outside training; the profile's if the study collects none."""
        words, layers = ["problems=-", "output=-", "model=-"], layers_of(self.name, "collect_rollouts")
        steps: list[CollectSettings] = self.steps.get("collect_rollouts") or [parse(CollectSettings, words, layers)]
        return steps[0]

    @cached_property
    def trainings(self) -> dict[str, Any]:
        """The settings of the first training by SFT and by GRPO (if any), on this machine."""
        names = [name for name in ("train_sft", "train_grpo") if name in self.steps]
        trainings: dict[str, Any] = {name: deepcopy(self.steps[name][0]) for name in names}
        for settings in trainings.values():
            settings.run.device, settings.run.processes = "gpu" if self.machine.gpus else "cpu", self.machine.gpus or 1
            if self.profile.engine == "verl":
                settings.run.nodes = self.machine.nodes
            settle_attention(settings)
        return trainings

    def ranks(self, on_cpu: int = 1) -> Ranks:
        """Return the processes of a training, one per GPU or ``on_cpu``, and how many runs share memory."""
        gpus, lanes = self.machine.gpus, {0: 2, 1: max(self.profile.lanes, 1)}  # two lanes on a CPU
        side_by_side = 1 if self.profile.engine == "verl" else lanes.get(gpus, 1)
        nodes = self.machine.nodes if gpus else 1
        return Ranks(gpus or on_cpu, nodes, gpu=bool(gpus), side_by_side=side_by_side)

    def needs(self) -> Iterator[Need]:
        """Yield the needs of every kind of step, and the disk space of the whole study."""
        shape, prompt, gpu = self.shape, self.profile.sampling.max_prompt_tokens, bool(self.machine.gpus)
        if not self.model:
            base, ranks = self.steps["pretrain_tiny"][0], replace(self.ranks(on_cpu=2), side_by_side=1)
            yield from pretraining_needs(shape, base.mesh, base.dtype, base.packing.rows, base.packing.length, ranks)
        yield from sampling_needs(self.collecting, shape, prompt, gpu=gpu)
        if self.profile.engine == "single":
            for settings in self.trainings.values():
                yield from training_needs(settings, shape, self.ranks())
        else:
            from compositionality.train.verl import memory

            for config in self.configs.values():
                yield from memory.training_needs(config, shape, self.tail, self.sizes)
        yield Need("the study", DISK, self.disk(), "give CKPT_DIR=… on another disk, or use fewer ARMS or SEEDS")

    @cached_property
    def configs(self) -> dict[str, Any]:
        """verl's configurations for these trainings."""
        from compositionality.train.verl.configure import grpo_config, sft_config

        make: dict[str, Callable[[Any], Any]] = {"train_sft": sft_config, "train_grpo": grpo_config}
        return {name: make[name](settings) for name, settings in self.trainings.items()}

    @property
    def tail(self) -> Any:
        """The assumed lengths of rows."""
        from compositionality.train.verl.memory import Tail

        return Tail(self.settings.mean_tokens, self.settings.share_at_limit)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of rows by path, for the problem files whose sizes the plan knows."""
        files = [file for step in self.steps.get("create_problems", []) for file in step.values()]
        rows = {str(file.output): file.count for file in files}
        for split in self.steps.get("split_chunks", []):
            rows |= {f"{split.output}/{number}.parquet": split.rows_per_chunk or 0 for number in range(split.chunks)}
        return rows

    def disk(self) -> dict[str, float]:
        """Return the bytes of a finished study by kind of run, over all seeds."""
        seeds, is_verl, parts = self.settings.seeds, self.profile.engine == "verl", dict[str, float]()
        for name, kind in (("train_grpo", "runs of RL"), ("train_sft", "of SFT")):
            if settings := self.trainings.get(name):
                count, dtype = seeds * len(self.steps[name]), settings.trainer.export_dtype
                best, keep = name == "train_grpo" and settings.trainer.keep_best, kept_checkpoints(settings)
                run = run_folder(self.shape, keep=keep, best=best, dtype=dtype, whole_model=not is_verl, saving=False)
                parts[f"{count} {kind}"] = count * sum(run.values())
        steps = self.steps.get("collect_rollouts", [])
        n_completions = sum(self.sizes.get(str(step.problems), 0) * step.n_samples for step in steps)
        parts["completions"] = seeds * self.settings.mean_tokens * n_completions * TOKEN_TEXT
        if is_verl:
            from compositionality.train.verl.memory import completion_files

            written = completion_files(self.configs["train_grpo"], self.tail, self.sizes)
            parts["completions"] += seeds * len(self.steps["train_grpo"]) * written
        if "train_sft" in self.trainings and not self.model:
            parts["base model"] = seeds * 4.0 * self.shape.parameters
        return parts

    def at_once(self) -> int | None:
        """Return how many completions of full length vLLM can hold on a GPU at a time; None for other engines."""
        gpu = self.machine.gpu_bytes
        if self.collecting.engine not in ("vllm", "ray") or gpu is None:
            return None
        prompt = self.profile.sampling.max_prompt_tokens
        return vllm_of(self.collecting, self.shape, prompt, gpu=True).at_once(self.shape, gpu)


def preflight(settings: PreflightSettings) -> None:
    """Print the table, then raise UserError if something does not fit."""
    if settings.compare:
        if settings.profile:
            raise UserError("compare=true: compares all GPU profiles; leave profile out")
        print(comparison())
        return
    profile = settings.profile or os.environ.get("PROFILE") or "single"
    model = settings.model or os.environ.get("BASE_MODEL") or ""
    forecast = forecast_of(replace(settings, profile=profile, model=model))
    needs, machine = [*forecast.needs()], describe(forecast.machine)
    console = new_console()
    console.width = min(COLUMNS, console.width)

    def say(text: str) -> None:
        whole_words = fill(text, console.width, break_long_words=False, break_on_hyphens=False)
        console.print(whole_words, soft_wrap=True)

    say(f"{forecast.name}: {forecast.shape.parameters / 1e6:,.1f} M parameters on {machine}")
    table = new_table("step", "of", "needed", "available", "", "largest parts")
    for need in needs:
        available = need.available(forecast.machine)
        size = "none" if available is None else in_gb(available)
        fits = "fits" if need.fits(forecast.machine) else "TOO MUCH"
        table.add_row(need.step, need.place, in_gb(need.total), size, fits, need.largest())
    console.print(table)
    if (at_once := forecast.at_once()) is not None:
        say(f"vLLM holds {at_once} completions of full length at a time on each GPU.")
    say("Calculated from the settings; time is not forecast.")
    if settings.prompt:
        prompt = render_prompt(forecast)
        say("A prompt as the model sees it:" if prompt else "No prompt to show: the model's tokenizer is missing.")
        console.print(prompt, end="\n" * bool(prompt), soft_wrap=True)
    missing = [need for need in needs if not need.fits(forecast.machine)]
    for need in missing:
        say(f"{need.step}, {need.place}: {need.hint}")
    if missing:
        names = ", ".join(dict.fromkeys(f"{need.step} ({need.place})" for need in missing))
        raise UserError(f"profile={forecast.name} does not fit {machine}: {names}")


def forecast_of(settings: PreflightSettings) -> Forecast:
    """Return the forecast for a study and a machine. UserError for a GPU profile without a GPU, or without scripts."""
    check_scripts()
    profile = load_profile(settings.profile).for_study(settings.study)
    name = settings.profile.partition("/")[0]
    local = this_machine(Path("checkpoints", name), settings.nodes)
    gpus = 0 if profile.device == "cpu" else local.gpus if settings.gpus is None else settings.gpus
    memory = settings.gpu_memory_gb * GB if settings.gpu_memory_gb else local.gpu_bytes
    if profile.device == "cpu" and (settings.gpus or settings.gpu_memory_gb):
        raise UserError(f"profile={name} computes on a CPU; leave gpus and gpu_memory_gb out")
    if profile.device == "gpu" and not (gpus and memory):
        raise UserError(f"profile={name} needs GPUs and this machine has none; give gpus=… gpu_memory_gb=… of another")
    host = settings.host_memory_gb * GB if settings.host_memory_gb else local.host_bytes
    disk = settings.disk_gb * GB if settings.disk_gb else local.disk_bytes
    return Forecast(settings, profile, Machine(settings.nodes, gpus, memory if gpus else None, host, disk))


def comparison() -> str:
    """Return a Markdown table: for each GPU profile and machine the largest need of any step in each place, in GB."""
    lines = [
        "| profile | machine | sampling, a GPU | completions at once | SFT, a GPU | RL, a GPU | a node | disk | fits |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for profile, (nodes, gpus) in product(PROFILES, MACHINES):
        settings = PreflightSettings(profile, nodes=nodes, gpus=gpus, gpu_memory_gb=80)
        forecast = forecast_of(replace(settings, host_memory_gb=UNLIMITED, disk_gb=UNLIMITED))
        needs = [*forecast.needs()]
        largest = [
            in_gb(max(need.total for need in needs if need.place == place and (not steps or need.step in steps)))
            for place, *steps in SHOWN
        ]
        too_much = dict.fromkeys(need.step for need in needs if not need.fits(forecast.machine))
        fits = f"no: {', '.join(too_much)}" if too_much else "yes"
        cells = [profile, describe(forecast.machine), largest[0], str(forecast.at_once() or ""), *largest[1:], fits]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def describe(machine: Machine) -> str:
    nodes = f"{machine.nodes} nodes of " if machine.nodes > 1 else ""
    if machine.gpu_bytes is None:
        return f"{nodes}a CPU with {in_gb(machine.host_bytes)}"
    return f"{nodes}{machine.gpus} × {machine.gpu_bytes / GB:g} GB"


def render_prompt(forecast: Forecast) -> str:
    """Return a prompt of the study's problems (strings, unless it has its own task) as the model sees it.

    Empty if the base model's tokenizer is not on this machine.
    """
    if not forecast.model:
        tokenizer = corpus_tokenizer(forecast.steps["pretrain_tiny"][0].mix)
    else:
        folder = Path(forecast.model).expanduser()
        if HUB_ID.fullmatch(forecast.model) and not folder.is_dir() and (cached := cached_config(forecast.model)):
            folder = cached.parent
        if not (folder / "tokenizer_config.json").is_file():
            return ""
        tokenizer = read_tokenizer(folder)
        tokenizer.chat_template = find_template(forecast.profile.chat_template or OWN, tokenizer, folder)[0]
    (name, *_) = (*forecast.request.loaded.owns, "string")
    files = file_settings([f"set={name}", f"profile={forecast.name}", "output=-"]).values()
    file = min(files, key=lambda options: getattr(options, "show_definitions", False))  # prompts of RL
    chat = [{"role": "user", "content": next(draw_problems(file)).prompt}]
    return str(tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False))
