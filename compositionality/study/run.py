"""``examples/run_study.py``: run a study for one seed or several, from the data to the report."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic_core import to_jsonable_python

from compositionality.config import cli
from compositionality.config.cli import BASH
from compositionality.config.profile import load_profile, use_device
from compositionality.config.verbs import VERBS
from compositionality.data.artefact import OUTDATED, write_text
from compositionality.errors import UserError, check_installed
from compositionality.evaluate.registration import FOLDER
from compositionality.gpus import VISIBLE, visible_gpus
from compositionality.ranges import NonNegativeInt, OneOf, PositiveInt, Seed
from compositionality.study.model import ROOTS, Replicate, Request, check_scripts, load_study
from compositionality.study.plan import plan
from compositionality.study.registered import check_not_registered, register, registered_study
from compositionality.study.runner import MACHINE, Backend, Local, Ray, Runner, Slurm, machine, versions
from compositionality.study.steps import IS_STEP_WORD, STEP_VARIABLES, Step
from compositionality.tasks.string.functions import side
from compositionality.train.verl.prompts import check_problems_last
from compositionality.validation import choices

MOST_LANES, MOST_SEEDS = 4, 1000
"""Maximum of parallel steps on a CPU; maximum of SEEDS."""


@dataclass
class RunStudySettings:
    """Steps, seeds and place of a run. Defaults are the variables of bash/env.sh, then the profile."""

    other_keys: ClassVar[str] = "a key of one step is STEP:KEY=VALUE; --help lists those of a study"
    study: str = ""  # a file of compositionality/config/study/, such as section41_42
    registration: str = ""  # instead of a study: a file of compositionality/config/registrations/, or a path
    replicates: NonNegativeInt | None = None  # of a registration: run this many that have no committed results
    register: bool = False  # write the hashes of claims and recipe into the registration, and run nothing
    profile: str = ""  # NAME or NAME/ENGINE, else $PROFILE
    seed: Seed | None = None  # the first seed, else $SEED
    seeds: PositiveInt | None = None  # how many seeds, else $SEEDS, else the study's
    arms: list[str] = field(default_factory=list)  # arms to train, else $ARMS, else the study's
    passk: list[str] = field(default_factory=list)  # models for pass@k, else the profile's
    variants: list[str] = field(default_factory=list)  # only these variants of the study (ablation, dial)
    only: list[str] = field(default_factory=list)  # steps by name or pattern, such as rl-* or claims
    report: bool = False  # add pass@k and failure modes of every seed, the claims, the page
    countdown: str = ""  # the study of section 4.3 for claims and page, else countdown[-PROFILE]
    lanes: PositiveInt | None = None  # parallel steps on this machine
    backend: str = ""  # local, ray or slurm, else $BACKEND, else local
    ray_address: str = ""  # address of a running Ray cluster, else $RAY_ADDRESS, else one is started here
    slurm_options: list[str] = field(default_factory=list)  # added to every sbatch
    print: Annotated[str, OneOf(("", "list", "bash", "make", "json"))] = ""  # print the plan in this form, run nothing
    log: str = ""  # file for the output of the steps; the screen then shows a line per finished step
    force: bool = False  # make everything again
    dry_run: bool = False  # check every step as at its start, run nothing; so does DRY_RUN=1


def main(about: str) -> None:
    """Run a study; ``about``: the verb's help. The words of its steps (STEP:key=value) are taken out of the keys."""
    words = [word for word in sys.argv[1:] if IS_STEP_WORD.match(word) or word == "--post-hoc"]
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in (*words, "--")]
    cli.run(RunStudySettings, lambda settings: run_study(settings, words), about)


def run_study(settings: RunStudySettings, words: Sequence[str] = ()) -> None:
    """Run every step; ``words``: STEP:key=value. SystemExit with the first failure's exit code.

    UserError for an unknown study, arm, step, profile or backend, and for a word that its step does not take.
    """
    check_scripts()
    if bool(settings.study) == bool(settings.registration):
        raise UserError("give either study=NAME or registration=NAME")
    if settings.register and settings.study:
        raise UserError(f"register=true study={settings.study}: give registration=NAME")
    dry = settings.dry_run or bool(os.environ.get("DRY_RUN"))
    if settings.register:
        print(f"{register(settings.registration, dry=dry)}: hashes written; commit it, then run bash/confirmatory.sh")
        return
    environ = dict(os.environ)
    if settings.only and (FOLDER / f"{environ.get('STUDY')}.yaml").is_file():  # bash/report.sh of a registered study
        settings = replace(settings, registration=environ["STUDY"], replicates=0)
        environ = {name: environ[name] for name in environ.keys() - {"PROFILE", "SEED", "SPLIT", "TEST_SEED"}}
    if settings.registration:
        steps, request = registered_study(
            settings.registration, words, environ, dry=dry or bool(settings.print), replicates=settings.replicates
        )
    else:
        request = request_of(settings, words, os.environ)
        check_not_registered(request.test_seed)
        steps = plan(request, settings.only)
        if settings.force:
            forced = [step.key for step in steps if "force" in step.flat or isinstance(step.settings, dict)]
            steps = [replace(step, words=(*step.words, "force=true")) if step.key in forced else step for step in steps]
    check_surroundings(settings, os.environ)
    check_shown(settings, request)
    for step in steps:
        _ = step.settings  # refuses unknown words before anything starts
    if not settings.only:
        check_files(steps)
    check_lasting_problems(steps)
    check_pairs(steps)
    if settings.print:
        print(shown(steps, settings.print))
        return
    for step in steps:
        check_named(step, step.check_outputs)
    use_device(request.settings)
    if dry:
        dry_run(steps)
        return
    backend = backend_of(settings, request)
    for name in STEP_VARIABLES:
        os.environ.pop(name, None)  # every step sets its own
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
            print(f"Open in a browser: {step.outputs[0]}/index.html")


def request_of(settings: RunStudySettings, words: Sequence[str], environ: Mapping[str, str]) -> Request:
    """Return the request that the settings make, with defaults from the variables of bash/env.sh and the profile.

    UserError for a variable of a single script.
    """
    for name in STEP_VARIABLES:
        if environ.get(name):
            raise UserError(
                f"{name}={environ[name]}: this variable is for a single script; give a study BASE_MODEL, "
                "or STEP:key=value for a key of one step"
            )
    study = load_study(settings.study)
    default = "single" if visible_gpus(environ) else "tiny"  # as in bash/env.sh
    profile = settings.profile or environ.get("PROFILE") or default
    number = settings.seeds or whole_number("SEEDS", environ, 1, MOST_SEEDS) or study.seeds
    seed = settings.seed if settings.seed is not None else whole_number("SEED", environ) or 0
    split, test_seed = whole_number("SPLIT", environ) or 0, whole_number("TEST_SEED", environ)
    if number > 1 and seed:
        raise UserError(f"SEED={seed} SEEDS={number}: give only one of the two; SEEDS=N runs seeds 0 to N-1")
    if number > 1 and split:
        raise UserError(
            f"SPLIT={split} SEEDS={number}: give only one of the two; bash/confirmatory.sh runs several splits"
        )
    ending = "" if profile == default else f"-{profile.replace('/', '-')}"
    name, device = environ.get("STUDY") or f"{study.name}{ending}", load_profile(profile).device
    return Request(
        settings.study,
        profile,
        tuple(Replicate(name, seed + offset, split) for offset in range(number)),
        tuple(settings.arms or environ.get("ARMS", "").split()),
        words=tuple(words),
        report=settings.report or bool(settings.only),
        passk=tuple(settings.passk),
        variants=tuple(settings.variants),
        countdown=settings.countdown or f"countdown{ending}",
        record="record" in settings.only,
        test_seed=2027 if test_seed is None else test_seed,
        base_model=environ.get("BASE_MODEL", ""),
        chat_template=environ.get("CHAT_TEMPLATE", ""),
        gpu=device == "gpu" or (not device and bool(visible_gpus(environ))),
    )


def whole_number(name: str, environ: Mapping[str, str], low: int = 0, high: int = 10**9) -> int | None:
    """Return the number that a variable holds; None if it is not set. UserError if it is no whole number in range."""
    value = environ.get(name, "")
    if value and (not re.fullmatch("0|[1-9][0-9]{0,9}", value) or not low <= int(value) <= high):
        raise UserError(f"{name}={value}: give a whole number from {low} to {high}, without leading zeros")
    return int(value) if value else None


def check_shown(settings: RunStudySettings, request: Request) -> None:
    """Raise UserError if a page is asked for of a study ($STUDY) that has no folder: nothing of it has been run."""
    roots = [Path(request.root(kind)) for kind in ROOTS]
    is_page = bool(settings.only) and {*settings.only} <= {"audit", "page"} and not settings.registration
    if not is_page or not os.environ.get("STUDY") or any(root.is_dir() for root in roots):
        return
    run = [path.name for root in roots for path in sorted(root.parent.glob("[!.]*/")) if [*path.glob("seed*")]]
    options = choices(request.name, [*run, *(path.stem for path in sorted(FOLDER.glob("*.yaml")))])
    raise UserError(f"STUDY={request.name}: no study of this name has been run; {options}")


def check_surroundings(settings: RunStudySettings, environ: Mapping[str, str]) -> None:
    """Raise UserError for a wrong backend, N_GPUS or root folder, also in a dry run."""
    if (name := settings.backend or environ.get("BACKEND") or "local") not in ("local", "ray", "slurm"):
        raise UserError(f"backend={name}: choose local, ray or slurm")
    whole_number("N_GPUS", environ)
    for root in ROOTS.values():
        if environ.get(root) and Path(environ[root]).is_file():
            raise UserError(f"{root}={environ[root]}: is a file; give a folder")


def backend_of(settings: RunStudySettings, request: Request) -> Backend:
    """Return where the steps run. UserError for a backend that is not installed, and for fewer GPUs than N_GPUS."""
    verl, gpus = request.settings.engine == "verl", visible_gpus(os.environ) if request.gpu else []
    count = whole_number("N_GPUS", os.environ) or len(gpus)
    if gpus and count > len(gpus):
        raise UserError(
            f"N_GPUS={count}, but the visible GPUs are {','.join(gpus)} "
            f"({VISIBLE}={os.environ.get(VISIBLE, 'not set')}); lower N_GPUS, or make more GPUs visible"
        )
    name = settings.backend or os.environ.get("BACKEND")
    if name == "slurm":
        if shutil.which("sbatch") is None:
            raise UserError("backend=slurm: sbatch not found; start this on a machine of the Slurm cluster")
        return Slurm([*settings.slurm_options])
    if name == "ray":
        check_installed("ray", "backend=ray")
        address = settings.ray_address or os.environ.get("RAY_ADDRESS", "")
        return Ray(address, 1 if verl else None)  # each training of verl takes the GPUs of all nodes
    gpus = gpus[:count]
    cpu_lanes = min(len(os.sched_getaffinity(0)), MOST_LANES)
    lanes = cpu_lanes if not request.gpu else len(gpus) if len(gpus) > 1 else max(request.settings.lanes, 1)
    return Local(1 if verl else settings.lanes or lanes, gpus)


def check_files(steps: Sequence[Step]) -> None:
    """Raise UserError if two steps write the same file, or a step reads a missing file that no step makes.

    A script of several steps does not declare its outputs: with one in the plan, only the first of the two is checked.
    """
    makers: dict[Path, str] = {}
    for step in steps:
        for output in () if step.flat.get("answers_only") else map(Path, step.outputs):
            if makers.setdefault(output, step.key) != step.key:
                raise UserError(
                    f"{makers[output]} and {step.key}: both write {output}; give one of them another OUTPUT"
                )
    around = {parent for output in makers for parent in output.parents}
    for step in steps if all(step.entry_point for step in steps) else ():
        folders = {Path(step.place.folder(root)).parent for root in ("data", "checkpoints")}
        for path in map(Path, sorted(step.inputs)):
            is_made = path in around or not makers.keys().isdisjoint((path, *path.parents))
            if not is_made and not folders.isdisjoint(path.parents) and not path.exists():
                key = next(key for key, value in step.flat.items() if str(path) in str(value))
                raise UserError(
                    f"{step.name}: {key}: {path} does not exist, and no step of the study makes it (problem files: "
                    "compositionality/config/problems)"
                )


def check_named(step: Step, check: Callable[[], object]) -> None:
    """Call ``check`` of this step without its output. Its UserError names the step."""
    try:
        with redirect_stdout(StringIO()):
            check()
    except UserError as error:
        raise UserError(f"{step.key}: {error}") from error


def check_lasting_problems(steps: Sequence[Step]) -> None:
    """Raise UserError for RL with verl if the plan makes fewer problems than the steps of training need."""
    problem_files = [file for step in steps if isinstance(step.settings, dict) for file in step.settings.values()]
    counts = {str(file.output): file.count for file in problem_files}
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
    """Raise UserError for a base model whose text composes a function that a test of the same seed holds out."""
    for base in steps:
        pairs = base.settings.mix.pairs if base.entry_point == "pretrain_tiny" else ()
        peers = [step for step in steps if step.place.study == base.place.study and step.place.seed == base.place.seed]
        files = [file for step in peers if isinstance(step.settings, dict) for file in step.settings.values()]
        tests = [file for file in files if pairs and getattr(file, "functions", "") == "heldout"]
        for split, always in {(file.function_split, tuple(file.always_trained)) for file in tests}:
            heldout = side("heldout", split, base.settings.drop, always)
            if bad := sorted(heldout & {number for pair in pairs for number in pair}):
                raise UserError(f"{base.key}: mix.pairs: func_{bad[0]} is held out by SPLIT={split}; name other pairs")


def dry_run(steps: Sequence[Step]) -> None:
    """Print every command and check it as at its start, in this process; a script of several steps checks its own.

    Results that an earlier step makes anew are not checked as inputs. UserError for the first step that is refused.
    """
    outdated, context = set[Path](), copy_context()
    context.run(OUTDATED.set, outdated)
    for step in steps:
        if step.entry_point:
            print(f"+ {step.shell()}", flush=True)
            check_named(step, partial(context.run, step.check))
            if step.why() or VERBS[step.entry_point].follows:
                outdated.update(map(Path, step.outputs))
        else:
            variables = {**os.environ, **step.variables, "DRY_RUN": "1"}
            completed = subprocess.run(step.command(sys.executable), cwd=BASH.parent, env=variables, check=False)
            if completed.returncode:
                raise SystemExit(completed.returncode)
    print(f"{len(steps)} steps: all settings checked, nothing was run", file=sys.stderr)


def shown(steps: Sequence[Step], form: str) -> str:
    """Return the plan as a list (with the reason why each step runs), as bash, as make, or as JSON."""
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
