"""Make a problem file of any task: settings in, one parquet file with its manifest out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from pathlib import Path
from types import GenericAlias
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from compositionality.data.artefact import Recipe, check_target, make, name_inputs
from compositionality.data.ledger import SplitLedger
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveInt, Seed, Workers
from compositionality.tasks.registry import all_tasks, find_task
from compositionality.tasks.task import Mode, Task
from compositionality.types import Problem
from compositionality.validation import phrases

TRAIN = "train"
SHOWN = 3
"""Number of problems to print if too few could be drawn."""


@dataclass
class CreateProblems:
    """Keys of every task; ``task=NAME mode=MODE`` adds the keys of that task.

    ``split`` and ``seed`` name the stream of problems; ``count`` is over all levels. Seeds that
    are equal modulo 8 (Countdown: 4) may share problems. ``avoid`` lists problem files with which the new file may
    share no problem (nor a composition, if functions were held out).
    """

    entry_point: ClassVar[str] = "create_problems"  # the name of these settings in a profile

    task: str = REQUIRED  # name of the task
    output: NonEmptyStr = REQUIRED  # problem file (parquet)
    mode: str = ""  # mode of the task; empty: its first
    split: NonEmptyStr = TRAIN  # name of the stream
    seed: Seed = 1  # seed of the stream
    count: PositiveInt = 1200  # problems, over all levels
    avoid: list[str] = field(default_factory=list)  # problem files to share nothing with
    workers: Workers = 1  # processes; changes the speed only
    force: bool = False  # replace a result that was made from something else


def problem_settings(words: Sequence[str]) -> type[CreateProblems]:
    """Return the class of settings for the task and mode in ``words`` (key=value). UserError if they are unknown."""
    values = dict(word.split("=", 1) for word in words if "=" in word)
    if "task" not in values:
        if "--help" in words or "-h" in words:
            return CreateProblems
        typo = "".join(f" ({name} is not a key)" for name in get_close_matches("task", values, 1))
        raise UserError(f"no value for task{typo}; give set=NAME, or task=NAME, one of {', '.join(all_tasks())}")
    return _schema(values["task"], values.get("mode", ""))


def settings_for(task: str, mode: str = "", **values: Any) -> CreateProblems:
    return _schema(task, mode)(task=task, mode=mode, **values)


@cache
def _schema(task_name: str, mode_name: str) -> type[CreateProblems]:
    task = find_task(task_name)
    name, mode = _mode(task, mode_name)
    kinds, helps = get_type_hints(mode.options), phrases(mode.options)
    options = [_setting(option, kinds[option.name], helps.get(option.name, "")) for option in fields(mode.options)]
    about = f"{task.title}, mode={name}. {mode.options.__doc__}"
    namespace = {"__doc__": about, "entry_point": f"{CreateProblems.entry_point}/{task.name}"}
    return make_dataclass("CreateProblemsOfTask", options, bases=(CreateProblems,), namespace=namespace)


def create_problems(settings: CreateProblems) -> Path:
    """Write the problem file ``settings.output`` unless it exists; return its path. UserError if it has a leak."""
    task, mode, recipe = check(settings)
    out, avoided = Path(settings.output), [Path(path) for path in settings.avoid]

    def write(path: Path) -> dict[str, Any]:
        if settings.split == TRAIN:
            _warn_of_shared_seeds(task, mode, settings.seed)
        problems = _draw_all(settings)
        write_table(to_table(problems, settings.split), path)
        if avoided:
            _ledger(tuple((other, other.stat().st_mtime_ns) for other in avoided)).check(path, shown_as=out)
        by_level = Counter(problem.level for problem in problems)
        return {"rows": len(problems), "by_level": {str(level): by_level[level] for level in sorted(by_level)}}

    if facts := make(out, recipe, write, force=settings.force):
        print(f"{out}: {facts['rows']} problems, by level {facts['by_level']}")
    return out


@lru_cache(maxsize=1)
def _ledger(avoided: tuple[tuple[Path, int], ...]) -> SplitLedger:
    """Return the ledger of these files (path, time of change); cached, so that a set reads them once."""
    ledger = SplitLedger()
    for path, _ in avoided:
        ledger.add_training(path)
    return ledger


def _draw_all(settings: CreateProblems) -> list[Problem]:
    """Return all problems of these settings; if there are too few, print three of the level with the fewest."""
    problems = list[Problem]()
    try:
        for problem in draw_problems(settings):
            problems.append(problem)
    except UserError:
        counts = Counter(problem.level for problem in problems)
        for problem in sorted(problems, key=lambda problem: counts[problem.level])[:SHOWN]:
            print(f"level {problem.level}: {problem.prompt!r}")
        raise
    return problems


def draw_problems(settings: CreateProblems) -> Iterator[Problem]:
    """Yield the problems of a file with these settings. UserError for options that the task refuses."""
    task, _, _, options = _options(settings)
    yield from task.problems(options, settings.split, settings.seed, settings.count, settings.workers)


def check(settings: CreateProblems) -> tuple[Task, Mode, Recipe]:
    """Return task, mode and recipe. UserError for options that the task refuses, and for an output not to overwrite."""
    if Path(settings.output).suffix != ".parquet":
        raise UserError(f"output={settings.output}: must end in .parquet")
    task, name, mode, options = _options(settings)
    avoid = dict(zip(name_inputs("avoid", settings.avoid), map(Path, settings.avoid), strict=True))
    stream = {key: getattr(settings, key) for key in (*mode.uses, "count")}
    recipe = Recipe("create_problems", {"task": task.name, "mode": name, **stream, **vars(options)}, avoid)
    check_target(Path(settings.output), recipe, force=settings.force)
    return task, mode, recipe


def _options(settings: CreateProblems) -> tuple[Task, str, Mode, Any]:
    task = find_task(settings.task)
    name, mode = _mode(task, settings.mode)
    values = {entry.name: getattr(settings, entry.name) for entry in fields(mode.options)}
    options = mode.options(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
    draw = partial(task.problems, options, settings.split, settings.seed)
    problems = draw(settings.count)  # checks the count
    few = len(getattr(options, "levels", ()))
    next(iter(draw(few) if few else problems), None)
    return task, name, mode, options


def _mode(task: Task, name: str) -> tuple[str, Mode]:
    if not task.modes:
        raise UserError(f"task={task.name}: only judges rows and makes none; use its files directly")
    name = name or next(iter(task.modes))
    if name not in task.modes:
        raise UserError(f"mode={name}: choose {' or '.join(task.modes)}")
    return name, task.modes[name]


def _warn_of_shared_seeds(task: Task, mode: Mode, seed: int) -> None:
    """Print a line if another seed may give some of the same problems."""
    classes = task.seed_classes
    if classes and "seed" in mode.uses and not 0 <= seed < classes:
        print(
            f"note: seed={seed} may share problems with other seeds that are {seed % classes} modulo {classes}; "
            f"0 to {classes - 1} share none, and avoid=[FILE] refuses problems of a file"
        )


def _setting(option: Field[Any], kind: Any, phrase: str) -> tuple[str, Any, Any]:
    """Return an option as a field of settings: a tuple becomes a list, a mapping a dictionary."""
    value = option.default if option.default_factory is MISSING else option.default_factory()
    default: dict[str, Any] = {"default": value}
    if get_origin(kind) is tuple:
        kind, default = GenericAlias(list, get_args(kind)[0]), {"default_factory": partial(list, value)}
    elif get_origin(kind) in (dict, Mapping):
        kind, default = dict[str, Any], {"default_factory": partial(dict, value)}
    return option.name, kind, field(**default, metadata={"help": phrase})
