"""SFT rows from a task's own solutions, without sampling: plain, with injected behaviours, or in other orders."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Interval

from compositionality.data.artefact import Recipe, check_target, is_to_be_checked, make
from compositionality.data.parquet import write_table
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, Fraction, NonEmptyStr, NonNegativeInt, PositiveInt, Seed
from compositionality.rft.rows import to_table
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import ANALYSIS_LEVELS, PLAIN, Behaviours
from compositionality.types import Message, Problem
from compositionality.validation import check_ranges

STEP = "write_solutions"


@dataclass
class SolutionSettings:
    """Settings of ``write_solutions``. The default is the plain solution of each problem."""

    problems: NonEmptyStr = REQUIRED  # problem file
    output: NonEmptyStr = REQUIRED  # folder for train.parquet
    limit: NonNegativeInt = 0  # use only the first problems; 0: all
    parts: PositiveInt = 1  # split the problems into this many equal parts and use only the first
    subgoals: bool = False  # steps worked out one operation at a time
    analysis: Annotated[int, Interval(ge=0, le=4)] = 0  # how often the problem's words are repeated, a level
    analysis_chance: Fraction | None = None  # instead: the same chance for each step
    reflection: Fraction = 0.0  # share of steps before which something is tried in vain
    padded: bool = False  # plain, with neutral text up to the length with all behaviours
    tags: bool = False  # put the solution between <think> tags, and its last line again between <answer> tags
    prompt_orders: PositiveInt = 1  # rows per problem: the original prompt, then reordered ones (PP-Aug)
    solution_orders: PositiveInt = 1  # rows per problem: the original solution, then reordered ones (RC-Aug)
    seed: Seed = 1  # seed of all choices in the solutions
    force: bool = False  # replace a result that was made from something else

    def behaviours(self) -> Behaviours:
        """Return the behaviours to inject. UserError for keys that exclude each other."""
        if self.analysis and self.analysis_chance is not None:
            raise UserError("analysis, analysis_chance: give only one of the two")
        of_level, chance = ANALYSIS_LEVELS[self.analysis], self.analysis_chance
        analysis = of_level if chance is None else (0.0, *[chance] * 5)  # of every step that names a quantity
        return Behaviours(self.subgoals, analysis, self.reflection, padded=self.padded)


def write_solutions(settings: SolutionSettings) -> Path:
    """Write ``output``/train.parquet. UserError for a task that does not support the behaviours or orders."""
    output = Path(settings.output)
    if facts := make(output, check(settings, dry=False), partial(_write, settings), force=settings.force):
        plain = f"{facts['plain'] / max(1, facts['rows']):.0%} of them unchanged by the keys"
        print(f"{output}: {facts['rows']:,} rows, {plain}; {facts['mean_characters']:,.0f} characters a solution")
    return output


def _write(settings: SolutionSettings, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    pairs = list(_solve_all(settings))
    write_table(to_table([row for row, _ in pairs]), folder / "train.parquet")
    chats = [[turn["content"] for turn in row["messages"][-2:]] for row, _ in pairs]
    characters = sum(len(solution) for _, solution in chats)
    plain = sum(chat == plain for chat, (_, plain) in zip(chats, pairs, strict=True))
    return {"plain": plain, "rows": len(pairs), "mean_characters": characters / max(1, len(pairs))}


def check(settings: SolutionSettings, *, dry: bool = True) -> Recipe:
    """Return the recipe. UserError for keys that exclude each other, or that the first problem's task does not have."""
    check_ranges(settings)
    settings.behaviours()
    if settings.prompt_orders > 1 and settings.solution_orders > 1:
        raise UserError("prompt_orders, solution_orders: give only one of the two")
    if settings.limit and settings.parts > 1:
        raise UserError("limit, parts: give only one of the two")
    values = {key: value for key, value in asdict(settings).items() if key not in ("problems", "output", "force")}
    recipe = Recipe(STEP, values, {"problems": Path(settings.problems)})
    check_target(Path(settings.output), recipe, force=settings.force)
    if is_to_be_checked(settings.problems, dry=dry):
        list(islice(_solve_all(settings), settings.prompt_orders + settings.solution_orders - 1))
    return recipe


def _solve_all(settings: SolutionSettings) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each row, with the plain prompt and solution of its problem."""
    injected = settings.behaviours()

    def solve(problem: Problem, behaviours: Behaviours, seed: int) -> str:
        text = task_of(problem.data_source).solution(problem, behaviours, seed)
        return _add_tags(problem, text) if settings.tags else text

    problems = read_problems(Path(settings.problems))
    limit = settings.limit or problems.num_rows // settings.parts
    if limit < 1:
        raise UserError(f"parts={settings.parts}: {settings.problems} has only {problems.num_rows} problems; lower it")
    chats = zip(iterate_problems(problems), problems["prompt"].to_pylist(), strict=True)
    for number, (problem, chat) in enumerate(islice(chats, limit)):
        task, row = task_of(problem.data_source), partial(_row, number, chat[:-1])
        plain = [problem.prompt, solve(problem, PLAIN, settings.seed)]
        for sample in range(settings.prompt_orders):
            reworded = task.reworded(problem, settings.seed + sample) if sample else problem
            yield row(reworded, solve(problem, injected, settings.seed), sample), plain
        for sample in range(1, settings.solution_orders):
            reordered = replace(injected, reordered=True)
            yield row(problem, solve(problem, reordered, settings.seed + sample), sample), plain


def _add_tags(problem: Problem, text: str) -> str:
    """Return a solution as a thought and an answer. UserError if the judge cannot read an answer between tags."""
    answer = "<answer>\n{}\n</answer>".format(text.rpartition("\n")[2])
    if task_of(problem.data_source).judge(answer, problem.ground_truth).score != 1:
        raise UserError(
            f"tags=true: the judge of {problem.data_source} cannot read this answer: {answer!r}; leave tags out"
        )
    return f"<think>\n{text}\n</think>\n{answer}"


def _row(number: int, earlier: list[Message], problem: Problem, text: str, sample: int) -> dict[str, Any]:
    question, answer = Message(role="user", content=problem.prompt), Message(role="assistant", content=text)
    skills = list(task_of(problem.data_source).skills(problem))
    extra = {"index": problem.index, "split": problem.metadata.get("split"), "sample": sample, "skills": skills}
    shared = {"data_source": problem.data_source, "level": problem.level, "group": problem.group}
    return {"messages": [*earlier, question, answer], **shared, "problem": number, "extra_info": extra}
