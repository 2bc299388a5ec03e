"""``examples/run_study.py``: a study for one seed or several, from nothing to what it reports."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic_core import to_jsonable_python

from compositionality.config import cli
from compositionality.config.makers import BASH
from compositionality.config.profile import load_profile, use_device
from compositionality.data.artefact import write_text
from compositionality.errors import UserError, check_installed
from compositionality.evaluate.registration import FOLDER
from compositionality.gpus import VISIBLE, visible_gpus
from compositionality.ranges import NonNegativeInt, OneOf, PositiveInt, Seed
from compositionality.study.model import ROOTS, Replicate, Request, check_scripts, load_study
from compositionality.study.plan import plan
from compositionality.study.registered import register, registered_study
from compositionality.study.runner import MACHINE, Backend, Local, Ray, Runner, Slurm, machine, versions
from compositionality.study.steps import IS_STEP_WORD, STEP_VARIABLES, Step
from compositionality.study.test_seeds import check_not_registered
from compositionality.tasks.string.functions import side
from compositionality.train.prompts import check_problems_last

MOST_LANES, MOST_SEEDS = 4, 1000
"""On a CPU."""


@dataclass
class RunStudySettings:
    """What runs, for which seeds, and where. What is not given is a variable of bash/env.sh, or the profile's."""

    other_keys: ClassVar[str] = "a key of one step is STEP:KEY=VALUE; --help lists those of a study"
    study: str = ""  # one of compositionality/config/study/
    registration: str = ""  # instead of a study: one of compositionality/config/registrations/, or a path
    replicates: NonNegativeInt | None = None  # of a registration: run so many of those that are not kept yet
    register: bool = False  # write the hashes of claims and recipe into the registration, and run nothing
    profile: str = ""  # PROFILE: NAME or NAME/ENGINE
    seed: Seed | None = None  # SEED: the first seed
    seeds: PositiveInt | None = None  # SEEDS: how many
    arms: list[str] = field(default_factory=list)  # ARMS
    passk: list[str] = field(default_factory=list)  # models whose pass@k is measured
    variants: list[str] = field(default_factory=list)  # of a study that has some
    only: list[str] = field(default_factory=list)  # steps by name or pattern, such as rl-* or claims
    report: bool = False  # also what a report reads of every seed (pass@k, failure modes), the claims, the page
    countdown: str = ""  # study of section 4.3 that claims and page read; empty: countdown…
    lanes: PositiveInt | None = None  # steps side by side on this machine
    backend: str = ""  # BACKEND: local, ray or slurm
    ray_address: str = ""  # RAY_ADDRESS: of a running Ray cluster; empty: one is started here
    slurm_options: list[str] = field(default_factory=list)  # added to every sbatch
    print: Annotated[str, OneOf(("", "list", "bash", "make", "json"))] = ""  # write the plan and run nothing
    log: str = ""  # file for what the steps say; then a line for each step is all that is printed
    force: bool = False  # make everything again
    dry_run: bool = False  # DRY_RUN: check every step as its start would, run nothing


def main(about: str) -> None:
    """Run a study with the words of its steps, which are no keys; ``about``: the verb's help."""
    words = [word for word in sys.argv[1:] if IS_STEP_WORD.match(word) or word == "--post-hoc"]
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in (*words, "--")]
    cli.run(RunStudySettings, lambda settings: run_study(settings, words), about)


def run_study(settings: RunStudySettings, words: Sequence[str] = ()) -> None:
    """Run every step; ``words``: STEP:key=value. SystemExit with the first failure's exit code.

    UserError for an unknown study, arm, step, profile or backend, and for a word that its step does not take.
    """
    check_scripts()
    if bool(settings.study) == bool(settings.registration):
        raise UserError("give study=NAME or registration=NAME, one of the two")
    if settings.register and settings.study:
        raise UserError(f"register=true study={settings.study}: give registration=NAME")
    dry = settings.dry_run or bool(os.environ.get("DRY_RUN"))
    if settings.register:
        print(f"{register(settings.registration, dry=dry)}: hashes written; commit it, then run bash/confirmatory.sh")
        return
    given = dict(os.environ)
    if settings.only and (FOLDER / f"{given.get('STUDY')}.yaml").is_file():  # bash/report.sh of a registered study
        settings = replace(settings, registration=given["STUDY"], replicates=0)
        given = {name: given[name] for name in given.keys() - {"PROFILE", "SEED", "SPLIT", "TEST_SEED"}}
    if settings.registration:
        steps, request = registered_study(
            settings.registration, words, given, dry=dry or bool(settings.print), replicates=settings.replicates
        )
    else:
        request = request_of(settings, words, os.environ)
        check_not_registered(request.test_seed)
        steps = plan(request, settings.only)
        if settings.force:
            forced = [step.key for step in steps if "force" in step.flat or isinstance(step.settings, dict)]
            steps = [replace(step, words=(*step.words, "force=true")) if step.key in forced else step for step in steps]
    check_surroundings(settings, os.environ)
    for step in steps:
        _ = step.settings  # every word is known before anything starts
    if not settings.only:
        check_files(steps)
    check_lasting_problems(steps)
    check_pairs(steps)
    if settings.print:
        print(shown(steps, settings.print))
        return
    use_device(request.settings)
    if dry:
        dry_run(steps)
        return
    backend = backend_of(settings, request)
    for name in STEP_VARIABLES:
        os.environ.pop(name, None)  # a step is given its own
    os.environ["WANDB_RUN_GROUP"] = os.environ.get("WANDB_RUN_GROUP") or request.name
    folder = Path(request.root("results"), request.section)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MACHINE).is_file():
        write_text(folder / MACHINE, json.dumps({**machine(), "versions": versions()}))
    runner = Runner(steps, backend, folder / "times.tsv", Path(settings.log) if settings.log else None)
    if os.environ.get("BEGAN", "").isdecimal():
        runner.began = int(os.environ["BEGAN"])
    if code := asyncio.run(runner.run()):
        raise SystemExit(code)
    for step in steps:
        if settings.log and step.name == "page":
            if (finding := Path(step.outputs[0], "finding.txt")).is_file():
                print(finding.read_text(), end="")
            print(f"The page, for any browser: {step.outputs[0]}/index.html")


def request_of(settings: RunStudySettings, words: Sequence[str], given: Mapping[str, str]) -> Request:
    """Return what is asked for by the settings, else by variables of bash/env.sh, else by the profile.

    UserError for a variable of a single script.
    """
    for name in STEP_VARIABLES:
        if given.get(name):
            raise UserError(
                f"{name}={given[name]}: of one script, and a study has many; a study starts from BASE_MODEL, "
                "and a key of one step is STEP:key=value"
            )
    study = load_study(settings.study)
    default = "single" if visible_gpus(given) else "tiny"  # as in bash/env.sh
    profile = settings.profile or given.get("PROFILE") or default
    number = settings.seeds or whole_number("SEEDS", given, 1, MOST_SEEDS) or study.seeds
    seed = settings.seed if settings.seed is not None else whole_number("SEED", given) or 0
    split, test_seed = whole_number("SPLIT", given) or 0, whole_number("TEST_SEED", given)
    if number > 1 and seed:
        raise UserError(f"SEED={seed} SEEDS={number}: give one of the two; SEEDS=N runs seeds 0 to N-1")
    if number > 1 and split:
        raise UserError(
            f"SPLIT={split} SEEDS={number}: give one of the two; bash/confirmatory.sh runs seeds with several splits"
        )
    ending = "" if profile == default else f"-{profile.replace('/', '-')}"
    name, device = given.get("STUDY") or f"{study.name}{ending}", load_profile(profile).device
    return Request(
        settings.study,
        profile,
        tuple(Replicate(name, seed + more, split) for more in range(number)),
        tuple(settings.arms or given.get("ARMS", "").split()),
        words=tuple(words),
        report=settings.report or bool(settings.only),
        passk=tuple(settings.passk),
        variants=tuple(settings.variants),
        countdown=settings.countdown or f"countdown{ending}",
        record="record" in settings.only,
        test_seed=2027 if test_seed is None else test_seed,
        base_model=given.get("BASE_MODEL", ""),
        chat_template=given.get("CHAT_TEMPLATE", ""),
        gpu=device == "gpu" or (not device and bool(visible_gpus(given))),
    )


def whole_number(name: str, given: Mapping[str, str], least: int = 0, most: int = 10**9) -> int | None:
    """Return the number that a variable holds; None if it is not given. UserError for what is none."""
    value = given.get(name, "")
    if value and (not re.fullmatch("0|[1-9][0-9]{0,9}", value) or not least <= int(value) <= most):
        raise UserError(f"{name}={value}: give a whole number from {least} to {most}, without leading zeros")
    return int(value) if value else None


def check_surroundings(settings: RunStudySettings, given: Mapping[str, str]) -> None:
    """UserError for variables of the machine that no start takes, also in a dry run: backend, GPUs, roots."""
    if (name := settings.backend or given.get("BACKEND") or "local") not in ("local", "ray", "slurm"):
        raise UserError(f"backend={name}: choose local, ray or slurm")
    whole_number("N_GPUS", given)
    for root in ROOTS.values():
        if given.get(root) and Path(given[root]).is_file():
            raise UserError(f"{root}={given[root]}: a file; give a folder")


def backend_of(settings: RunStudySettings, request: Request) -> Backend:
    """Return where the steps run. UserError for a backend that is not installed, and for fewer GPUs than N_GPUS."""
    verl, gpus = request.settings.engine == "verl", visible_gpus(os.environ) if request.gpu else []
    wanted = whole_number("N_GPUS", os.environ) or len(gpus)
    if gpus and wanted > len(gpus):
        raise UserError(
            f"N_GPUS={wanted}, but the visible GPUs are {','.join(gpus)} "
            f"({VISIBLE}={os.environ.get(VISIBLE, 'not set')}); lower N_GPUS, or make more visible"
        )
    name = settings.backend or os.environ.get("BACKEND")
    if name == "slurm":
        if shutil.which("sbatch") is None:
            raise UserError("backend=slurm: there is no sbatch here; start this on a machine of the Slurm cluster")
        return Slurm([*settings.slurm_options])
    if name == "ray":
        check_installed("ray", "backend=ray")
        address = settings.ray_address or os.environ.get("RAY_ADDRESS", "")
        return Ray(address, 1 if verl else None)  # each training of verl takes the GPUs of all nodes
    gpus = gpus[:wanted]
    cpu_lanes = min(len(os.sched_getaffinity(0)), MOST_LANES)
    lanes = cpu_lanes if not request.gpu else len(gpus) if len(gpus) > 1 else max(request.settings.lanes, 1)
    return Local(1 if verl else settings.lanes or lanes, gpus)


def check_files(steps: Sequence[Step]) -> None:
    """UserError where two steps write the same, or one reads what is not there in its study, and no step makes it.

    Scripts of several steps do not say what they make: beside one only the first is checked.
    """
    makers: dict[Path, str] = {}
    for step in steps:
        for output in () if step.flat.get("answers_only") else map(Path, step.outputs):
            if makers.setdefault(output, step.key) != step.key:
                raise UserError(
                    f"{makers[output]} and {step.key}: both write {output}; give one of them another OUTPUT"
                )
    around = {above for output in makers for above in output.parents}
    for step in steps if all(step.entry_point for step in steps) else ():
        folders = {Path(step.place.folder(root)).parent for root in ("data", "checkpoints")}
        for path in map(Path, sorted(step.inputs)):
            made = path in around or not makers.keys().isdisjoint((path, *path.parents))
            if not made and not folders.isdisjoint(path.parents) and not path.exists():
                key = next(key for key, value in step.flat.items() if str(path) in str(value))
                raise UserError(
                    f"{step.name}: {key}: {path} is not there, and no step of the study makes it (files of problems: "
                    "compositionality/config/problems)"
                )


def check_lasting_problems(steps: Sequence[Step]) -> None:
    """UserError for a step of RL by verl whose problems, where the plan makes them, do not last for its steps."""
    made = [file for step in steps if isinstance(step.settings, dict) for file in step.settings.values()]
    counts = {str(file.output): file.count for file in made}
    for step in steps:
        if step.entry_point != "train_grpo" or step.settings.engine != "verl":
            continue
        files, trainer = step.settings.data.train_files, step.settings.trainer
        if not counts.keys() >= {*files}:
            continue
        length = trainer.steps if trainer.epochs else trainer.last_step()
        length = step.flat.get("verl.trainer.total_training_steps", length)
        epochs = int(step.flat.get("verl.trainer.total_epochs", trainer.epochs or 1))
        problems, batch = sum(counts[file] for file in files), step.settings.generation_batch()
        if trainer.epochs and length and problems * epochs < batch * length:
            length = None  # until they are used up
        names = ", ".join(Path(file).parent.name for file in files)
        check_problems_last(f"{step.name}: {names}", problems, epochs, batch, length)


def check_pairs(steps: Sequence[Step]) -> None:
    """UserError for a base model whose text composes a function that a test of the same seed holds out."""
    for base in steps:
        pairs = base.settings.mix.pairs if base.entry_point == "pretrain_tiny" else ()
        beside = [step for step in steps if step.place.study == base.place.study and step.place.seed == base.place.seed]
        files = [file for step in beside if isinstance(step.settings, dict) for file in step.settings.values()]
        tests = [file for file in files if pairs and getattr(file, "functions", "") == "heldout"]
        for split, kept in {(file.function_split, tuple(file.always_trained)) for file in tests}:
            heldout = side("heldout", split, base.settings.drop, kept)
            if bad := sorted(heldout & {number for pair in pairs for number in pair}):
                raise UserError(f"{base.key}: mix.pairs: func_{bad[0]} is held out by SPLIT={split}; name other pairs")


def dry_run(steps: Sequence[Step]) -> None:
    """Print every command and check it as its start would, all in this process; a script of several steps says its own.

    UserError for the first step that would be refused.
    """
    for step in steps:
        if step.entry_point:
            print(f"+ {step.shell()}", flush=True)
            try:
                with redirect_stdout(StringIO()):  # of a check only its error is shown
                    step.check()
            except UserError as error:
                raise UserError(f"{step.key}: {error}") from error
        else:
            variables = {**os.environ, **step.variables, "DRY_RUN": "1"}
            done = subprocess.run(step.command(sys.executable), cwd=BASH.parent, env=variables, check=False)
            if done.returncode:
                raise SystemExit(done.returncode)
    print(f"{len(steps)} steps: all settings checked, nothing was run", file=sys.stderr)


def shown(steps: Sequence[Step], form: str) -> str:
    """Return the plan as a list with why each step runs, as bash, as make, or as JSON."""
    if form == "list":
        return "\n".join(f"{step.key}: {step.why() or 'done'}" for step in steps)
    if form == "bash":
        return "\n".join(["set -euo pipefail", *(f"{step.shell()}  # {step.key}" for step in steps)])
    if form == "make":
        names = {step.key: step.key.replace("/", ".") for step in steps}
        rules = [
            f"{names[step.key]}: {' '.join(names[key] for key in step.after)}\n\t{step.shell().replace('$', '$$')}"
            for step in steps
        ]
        return "\n".join([f".PHONY: all {' '.join(names.values())}", f"all: {' '.join(names.values())}", *rules])
    keys = ("key", "script", "entry_point", "words", "variables", "after", "one_lane", "outputs", "settings")
    plan = [{**{key: getattr(step, key) for key in keys}, "why": step.why()} for step in steps]
    return json.dumps(plan, indent=1, default=to_jsonable_python)
