"""The registry of tasks, and the task that a ``data_source`` belongs to.

The project's own tasks are listed here; others are registered by their packages, through the entry-point group
``compositionality.tasks`` (the name of the task = module:TASK). A task is imported when it is first looked for.
"""

import importlib
import re
from collections.abc import Mapping
from functools import cache, lru_cache

from compositionality.errors import UserError
from compositionality.tasks.task import Task
from compositionality.types import Verdict

GROUP = "compositionality.tasks"
OURS = {
    "tasks": ("string", "countdown", "igsm"),
    "domains": ("math", "code", "logic", "simulation", "stem", "table", "reasoning_gym"),
}
BUILT_IN = {name: f"compositionality.{room}.{name}.task:TASK" for room, names in OURS.items() for name in names}


@cache
def all_tasks() -> Mapping[str, Task]:
    """Return every registered task by its name, the project's own first.

    UserError for a name that is registered twice, and for an entry point that cannot be loaded or is no task.
    """
    from importlib.metadata import entry_points  # slow to import

    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    installed = {(entry.name, entry.value) for entry in entry_points(group=GROUP)}  # twice on the path counts once
    for name, place in [*BUILT_IN.items(), *sorted(installed)]:
        if name in places:
            raise UserError(
                f"task {name!r} is registered twice, by {places[name]} and by {place}; rename or uninstall one"
            )
        places[name] = place
        tasks[name] = _load(name, place)
    return tasks


def find_task(name: str) -> Task:
    """Return the task called ``name``; UserError that lists the known ones for an unknown name."""
    task = all_tasks().get(name)
    if task is None:
        from compositionality.validation import choices  # with pydantic

        raise UserError(f"unknown task {name!r}; {choices(name, all_tasks())}")
    return task


@lru_cache(maxsize=4096)
def task_of(data_source: str) -> Task:
    """Return the task that ``data_source`` belongs to; UserError for none, or several."""
    claims = [task for task in all_tasks().values() if any(re.fullmatch(one, data_source) for one in task.data_sources)]
    if not claims:
        patterns = [pattern for task in all_tasks().values() for pattern in task.data_sources]
        raise UserError(
            f"unknown data_source {data_source!r}; known: {', '.join(patterns)}; judge others by a function of your "
            f"own (reward.function=FILE.py), or register a task by an entry point of the group {GROUP} "
            "(compositionality/tasks/README.md)"
        )
    if len(claims) > 1:
        names = " and ".join(task.name for task in claims)
        raise UserError(f"data_source {data_source!r} is claimed by the tasks {names}; change the patterns of one")
    return claims[0]


def known_task(data_source: str) -> Task:
    """Return ``task_of``, or for rows of no task (a reward function judges them) one that knows nothing of them."""
    try:
        return task_of(data_source)
    except UserError:
        return _UNKNOWN


class _Unknown(Task):
    name, title, data_sources = "unknown", "Unknown", ()

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        del answer_text, ground_truth
        raise UserError("a row of an unknown data source has no judge; give reward.function")


_UNKNOWN = _Unknown()


def _load(name: str, place: str) -> Task:
    module, _, attribute = place.partition(":")
    try:
        task = getattr(importlib.import_module(module), attribute or "TASK")
    except (ImportError, AttributeError) as error:
        raise UserError(f"task {name!r}: {place} cannot be loaded ({error}); fix or uninstall its package") from error
    if not isinstance(task, Task) or task.name != name:
        raise UserError(f"task {name!r}: {place} is no Task of that name; fix or uninstall its package")
    return task
