"""SFT rows from a task's own solutions, which no model samples: with behaviours injected, or in other orders."""

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
from compositionality.ranges import REQUIRED, Fraction, NonEmptyStr, NonNegativeInt, PositiveInt, Seed, check_ranges
from compositionality.rft.rows import to_table
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import ANALYSIS_LEVELS, PLAIN, Behaviours, flat
from compositionality.types import Message, Problem

STEP = "write_solutions"


@dataclass
class SolutionSettings:
    """Settings of ``write_solutions``. Without behaviours and orders: the plain solution of each problem."""

    problems: NonEmptyStr = REQUIRED  # problem file
    output: NonEmptyStr = REQUIRED  # folder for train.parquet
    limit: NonNegativeInt = 0  # the first so many problems; 0: all
    parts: PositiveInt = 1  # of so many equal parts of the problems the first alone
    subgoals: bool = False  # steps worked out one operation at a time
    analysis: Annotated[int, Interval(ge=0, le=4)] = 0  # level of how often the problem's words are repeated
    analysis_chance: Fraction | None = None  # instead, of each step the same chance
    reflection: Fraction = 0.0  # before so many steps something is tried in vain
    padded: bool = False  # plain, with neutral text until as long as with all behaviours
    tags: bool = False  # the solution between <think> tags, its last line once more between <answer> tags
    prompt_orders: PositiveInt = 1  # rows of each problem: the prompt as it is, then in other orders (PP-Aug)
    solution_orders: PositiveInt = 1  # rows of each problem: its solution, then others in other orders (RC-Aug)
    seed: Seed = 1  # of all choices in the solutions
    force: bool = False  # replace a result that was made from something else

    def behaviours(self) -> Behaviours:
        """Return what is injected. UserError for what does not go together."""
        if self.analysis and self.analysis_chance is not None:
            raise UserError("analysis, analysis_chance: give one of the two")
        levels = ANALYSIS_LEVELS[self.analysis]
        analysis = levels if self.analysis_chance is None else flat(self.analysis_chance)
        return Behaviours(self.subgoals, analysis, self.reflection, padded=self.padded)


def write_solutions(settings: SolutionSettings) -> Path:
    """Write ``output``/train.parquet. UserError for a task that knows no such behaviours or orders."""
    output = Path(settings.output)
    if facts := make(output, check(settings, dry=False), partial(_write, settings), force=settings.force):
        plain = f"{facts['plain'] / max(1, facts['rows']):.0%} of them prompt and solution as they are without keys"
        print(f"{output}: {facts['rows']:,} rows, {plain}; {facts['mean_characters']:,.0f} characters a solution")
    return output


def _write(settings: SolutionSettings, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    pairs = list(_written(settings))
    write_table(to_table([row for row, _ in pairs]), folder / "train.parquet")
    chats = [[turn["content"] for turn in row["messages"][-2:]] for row, _ in pairs]
    characters = sum(len(solution) for _, solution in chats)
    plain = sum(chat == plain for chat, (_, plain) in zip(chats, pairs, strict=True))
    return {"plain": plain, "rows": len(pairs), "mean_characters": characters / max(1, len(pairs))}


def check(settings: SolutionSettings, *, dry: bool = True) -> Recipe:
    """Return the recipe. UserError for settings that do not go together, or that the first problem's task lacks."""
    check_ranges(settings)
    settings.behaviours()
    if settings.prompt_orders > 1 and settings.solution_orders > 1:
        raise UserError("prompt_orders, solution_orders: give one of the two")
    if settings.limit and settings.parts > 1:
        raise UserError("limit, parts: give one of the two")
    values = {key: value for key, value in asdict(settings).items() if key not in ("problems", "output", "force")}
    recipe = Recipe(STEP, values, {"problems": Path(settings.problems)})
    check_target(Path(settings.output), recipe, force=settings.force)
    if is_to_be_checked(settings.problems, dry=dry):
        list(islice(_written(settings), settings.prompt_orders + settings.solution_orders - 1))
    return recipe


def _written(settings: SolutionSettings) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each row with the prompt and the solution that its problem has without any behaviour or other order."""
    injected = settings.behaviours()

    def solved(problem: Problem, behaviours: Behaviours, seed: int) -> str:
        text = task_of(problem.data_source).solution(problem, behaviours, seed)
        return _tagged(problem, text) if settings.tags else text

    problems = read_problems(Path(settings.problems))
    limit = settings.limit or problems.num_rows // settings.parts
    if limit < 1:
        raise UserError(f"parts={settings.parts}: {settings.problems} has only {problems.num_rows} problems")
    chats = zip(iterate_problems(problems), problems["prompt"].to_pylist(), strict=True)
    for number, (problem, chat) in enumerate(islice(chats, limit)):
        task, row = task_of(problem.data_source), partial(_row, number, chat[:-1])
        plain = [problem.prompt, solved(problem, PLAIN, settings.seed)]
        for sample in range(settings.prompt_orders):
            asked = task.reworded(problem, settings.seed + sample) if sample else problem
            yield row(asked, solved(problem, injected, settings.seed), sample), plain
        for sample in range(1, settings.solution_orders):
            reordered = replace(injected, reordered=True)
            yield row(problem, solved(problem, reordered, settings.seed + sample), sample), plain


def _tagged(problem: Problem, text: str) -> str:
    """Return a solution as a thought and an answer. UserError if the judge does not read the answer between tags."""
    answer = "<answer>\n{}\n</answer>".format(text.rpartition("\n")[2])
    if task_of(problem.data_source).judge(answer, problem.ground_truth).score != 1:
        raise UserError(
            f"tags=true: the judge of {problem.data_source} does not read this answer: {answer!r}; leave it out"
        )
    return f"<think>\n{text}\n</think>\n{answer}"


def _row(number: int, earlier: list[Message], problem: Problem, text: str, sample: int) -> dict[str, Any]:
    asked, answer = Message(role="user", content=problem.prompt), Message(role="assistant", content=text)
    skills = list(task_of(problem.data_source).skills(problem))
    extra = {"index": problem.index, "split": problem.metadata.get("split"), "sample": sample, "skills": skills}
    shared = {"data_source": problem.data_source, "level": problem.level, "group": problem.group}
    return {"messages": [*earlier, asked, answer], **shared, "problem": number, "extra_info": extra}
