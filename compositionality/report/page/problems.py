"""Single problems on the page: a worked one, completions to read, the problem behind a dot, steps of RL.

Completions are those of one replicate (``Inputs.kept``); problems those of the replicate shown first too.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.data.json_files import NUMBER, check_shape, parse_json_object
from compositionality.data.problems import level_and_group, problem_of
from compositionality.errors import UserError
from compositionality.evaluate.results import ReplicateTables
from compositionality.evaluate.summary import HELDOUT
from compositionality.evaluate.table import RESULTS
from compositionality.report.figures import level_name
from compositionality.report.gold_figures import starts_of
from compositionality.report.page.content import HeadlineComparison
from compositionality.report.page.figure import PageFigure, shown_words, styles_of
from compositionality.report.page.inputs import AGAIN, MAIN, POINTS, SCALING, VALIDATION, Inputs
from compositionality.report.theme import group_title
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.diagnosis import ROLES
from compositionality.tasks.registry import task_of
from compositionality.tasks.string.functions import ALIASES

AT_MOST = 600
"""Completions in all; the page stays readable and small."""
OF_A_FOLDER = 12
"""Completions at most of one model, file, level and reason."""
LONGEST = 4000
"""Characters of a prompt or a completion that are shown."""
MOST_MODELS = 8
"""Models in a worked problem; of more, it has the two that are compared."""
CELL = ["group", "level", "reason"]
OUTCOMES = {
    "right_chain": "right, every step right",
    "right": "right",
    "handed_on": "wrong, but hands every result on",
    "names_in_order": "wrong, but names the functions in order",
}
"""Words for a single answer, by the first column that is 1."""
SHOWN = ["problem", "reason", "answer", "response", "n_tokens", "finish_reason"]
DOTS = "gold_probability"
EXPLORED = (DOTS, "answers")
"""Figures whose dots are problems: by exact probability, by right answers; a page explores the first that it has."""
PER_LEVEL = 200
"""Problems of a level, at most."""
MOST = 1_500_000
"""Characters of prompts and answers in all, so that the page stays small."""
STEPS = ("trainer.steps", "trainer.total_training_steps")
"""In a run's settings: the single-file engine's, verl's."""
OF_A_SOURCE = 3
"""Problems of a data source, at most, of a validation that verl writes whole."""
SHAPE_OF_VERL = {"input": str, "output": str, "gts": str, "score": NUMBER}
SHAPE = {"problem": int, "data_source": str, "prompt": str, "ground_truth": str, "completion": str, "right": bool}
PAIR = ["file", "problem"]
Row = dict[str, Any]


def samples(inputs: Inputs) -> list[Row]:
    """Return rows with model, group, level, reason, prompt, gold, response, answer, tokens; problems in file order."""
    if not inputs.summary["models"]:
        return []
    problems = inputs.problems[inputs.kept]
    rows = [
        first_of_each_cell(folder, table).assign(model=model, file=name)
        for model in inputs.summary["models"]
        for name, table in problems.items()
        if (folder := rollouts_of(inputs, inputs.kept, model, name))
    ]
    if not rows:
        return []
    cells = pd.concat(rows, ignore_index=True).groupby(["model", *CELL], sort=False)
    chosen = cells.head(max(1, AT_MOST // cells.ngroups)).head(AT_MOST)
    return [
        {
            **completion_row(row, row["model"]), **{name: row[name] for name in ("group", "level", "problem")},
            **question(problems[row["file"]].slice(row["problem"], 1).to_pylist()[0], row["problem"]),
        }
        for row in chosen.to_dict("records")
    ]  # fmt: skip


def worked_problem(inputs: Inputs, subject: HeadlineComparison) -> Row:
    """Return a problem of the compared level with every model's outcome, first completion and exact steps, if kept.

    The first that the arm solves and its base does not; without such a problem the first of the level. Empty where the
    problems are not known.
    """
    models = inputs.summary["models"]
    everybody = len(models) <= MOST_MODELS
    asked = models if everybody else [model for model in models if model in (subject.model, subject.base)]
    answered = inputs.evaluated.rows
    answered = answered[(answered["replicate"] == inputs.shown) & answered["arm"].isin(asked)]
    for name, table in inputs.problems[inputs.shown].items():
        is_asked = (answered["file"] == name) & (answered["group"] == subject.group)
        rows = answered[is_asked & (answered["level"] == subject.level)]
        if rows.empty:
            continue
        exact = rows.dropna(subset="gold_log_prob")
        numbers = (rows if exact.empty else exact)["problem"]
        solved = {*rows.loc[(rows["arm"] == subject.model) & (rows["right"] == rows["n"]), "problem"]}
        unsolved = {*rows.loc[(rows["arm"] == subject.base) & (rows["right"] == 0), "problem"]}
        told_apart = solved & unsolved & {*numbers}
        number = int(min(told_apart or numbers))
        asked_for = question(table.slice(number, 1).to_pylist()[0], number)
        rows = rows[rows["problem"] == number].set_index("arm").loc[asked]
        styles = styles_of(inputs, [*asked, subject.base])
        return {
            **asked_for, "level": subject.level, "number": number, "chosen": bool(told_apart), "everybody": everybody,
            "model": styles[subject.model].title, "base": styles[subject.base].title, "of": shown_words(inputs),
            "meanings": meanings(asked_for["prompt"]),
            "answers": [
                {**completion_row(said, model), "title": styles[model].title}
                for model in asked
                for folder in [rollouts_of(inputs, inputs.shown, model, name)]
                for _, said in (first_completions(folder, [number]) if folder else ())
            ],
            "steps": {
                "titles": ["", *(styles[model].title for model in asked)],
                "rows": [["answer", *outcomes(rows)], *step_rows(rows, asked_for["gold"])],
            },
        }  # fmt: skip
    return {}


def step_rows(rows: pd.DataFrame, gold: str) -> list[list[str]]:
    """Return each step of the gold solution, then all of it, with the probability that every model gives it."""
    if rows["gold_log_prob_by_step_role"].isna().any():
        return []
    by_step = [np.reshape(cells, (-1, len(ROLES))).sum(axis=1) / 100 for cells in rows["gold_log_prob_by_step_role"]]
    logs, lines = [*zip(*by_step, strict=True), rows["gold_log_prob"]], gold.strip().split("\n")
    names = lines if len(lines) == len(logs) - 1 else [f"step {place}" for place in range(1, len(logs))]
    probabilities = [[f"{np.exp(log):.2g}" for log in step] for step in logs]
    return [[name, *step] for name, step in zip([*names, "all steps"], probabilities, strict=True)]


def outcomes(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return in words what a model's answers are: of a single one what holds of it, of several how many are right."""
    several = rows["right"].astype(int).astype(str) + " of " + rows["judged"].astype(int).astype(str) + " right"
    single = np.select([rows[name] == 1 for name in OUTCOMES], [*OUTCOMES.values()], "wrong")
    return several.where(rows["n"] > 1, pd.Series(single, rows.index).where(rows["judged"] > 0, "not judged"))


def rollouts_of(inputs: Inputs, replicate: str, model: str, file: str) -> Path | None:
    """Return the completions of one model to one problem file; those of one replicate alone are inputs."""
    return inputs.files.get(f"rollouts/{model}/{file}") if replicate == inputs.kept else None


def first_completions(folder: Path, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Yield the first completion of each of these problems."""
    problems = pa.array(numbers, pa.int64())
    for shard in read_rollouts(folder):
        rows = shard.filter(pc.and_(pc.equal(shard["sample"], 0), pc.is_in(shard["problem"], problems)))
        yield from ((row["problem"], row) for row in rows.to_pylist())


def first_of_each_cell(folder: Path, problems: pa.Table) -> pd.DataFrame:
    """Return the first completions of every group, level and reason, at most one of each problem."""
    cells = problems.select(["group", "level"]).to_pandas()
    parts = [pd.DataFrame(columns=[*SHOWN, "group", "level"])]
    for shard in read_rollouts(folder):
        if (last := max(shard["problem"].to_pylist(), default=0)) >= len(cells):
            raise UserError(f"{folder}: answers problem {last}, its file has {len(cells)}; evaluate again")
        first = shard.filter(pc.equal(shard["sample"], 0)).select(SHOWN)
        labelled = first.select(["problem", "reason"]).to_pandas().join(cells, on="problem")
        places = labelled.groupby(CELL, sort=False).head(OF_A_FOLDER).index
        parts.append(first.take(pa.array(places, pa.int64())).to_pandas().join(cells, on="problem"))
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return rows.groupby(CELL, sort=False).head(OF_A_FOLDER).fillna({"answer": ""})


def completion_row(row: Mapping[str, Any], model: str) -> Row:
    """Return what is shown of one completion."""
    return {
        "model": model, "reason": row["reason"], "tokens": row["n_tokens"], "finish": row["finish_reason"],
        "answer": cut(row["answer"] or ""), "response": cut(row["response"]),
    }  # fmt: skip


def question(row: Mapping[str, Any], number: int) -> Row:
    """Return the prompt's last message and the task's gold completion; the ground truth itself where it makes none."""
    problem = problem_of(row, number)
    try:
        gold = task_of(problem.data_source).gold(problem)
    except UserError:
        gold = problem.ground_truth
    return {"prompt": cut(row["prompt"][-1]["content"]), "gold": cut(gold)}


def meanings(prompt: str) -> list[tuple[str, str]]:
    """Return (name, meaning) of the functions of a compact prompt, innermost first; none of another prompt."""
    if not re.match(r"(?:[a-z]+_\d+){2,}:", prompt):
        return []
    names = dict.fromkeys(re.findall(r"[a-z]+_\d+", prompt.partition(":")[0])[::-1])
    functions = [ALIASES[name] for name in names if name in ALIASES]
    texts = [re.split(r"[.:]$|: |\n", str(function.run.__doc__))[0].replace("`", "") for function in functions]
    frozen = ["" if function.frozen is None else f" ({function.frozen})" for function in functions]
    return [(one.alias, text + word) for one, text, word in zip(functions, texts, frozen, strict=True)]


def cut(text: str) -> str:
    """The text, its middle left out where it is long."""
    left_out = len(text) - LONGEST
    if left_out <= 0:
        return text
    return f"{text[: LONGEST // 2]}\n[… {left_out:,} characters left out …]\n{text[-LONGEST // 2 :]}"


def explorer(inputs: Inputs, figures: Sequence[PageFigure]) -> Row:
    """Return the problems of each replicate with what every model makes of them, as columns; {} without such dots."""
    drawn = next((figure for figure in figures if figure.name in EXPLORED), None)
    if drawn is None:
        return {}
    exact, starts = drawn.name == DOTS, starts_of(inputs.evaluated)
    rows = inputs.evaluated.rows.drop(columns="cluster")
    if exact:
        asked = compositions(inputs.evaluated.replicates)
        rows = rows[(rows["group"] == HELDOUT) & rows["gold_log_prob"].notna()].merge(asked, on=["replicate", *PAIR])
    else:
        rows = rows[rows["judged"] > 0].assign(cluster="")
    rows = rows.sort_values(["level", *PAIR], kind="stable")
    codes, words = pd.factorize(outcomes(rows))
    value = rows["gold_log_prob"] / np.log(10) if exact else rows["right"] / rows["judged"]
    rows = rows.assign(code=codes, p=(100 * value).round().astype(int))
    starts = {name: start for name, start in starts.items() if name in set(rows["arm"])}
    styles, order = styles_of(inputs, [*starts]), [*starts]
    panels = {row["arm"]: row["panel"] for table in drawn.spec["datasets"].values() for row in table}
    models = [
        {"title": style.title, "panel": panels.get(style.title), "start": order.index(starts[name])}
        if starts[name] in order
        else {"title": style.title}
        for name in order
        for style in [styles[name]]
    ]
    by_replicate = {str(name): columns(part, order) for name, part in rows.groupby("replicate", sort=False)}
    texts = {name: answers(inputs, order, by_replicate[name], name) for name in inputs.problems if name in by_replicate}
    replicates = [{**part, "name": name, "texts": texts.get(name, {})} for name, part in by_replicate.items()]
    about = {"figure": drawn.name, "exact": exact, "first": inputs.shown}
    about["missing"] = missing(inputs, by_replicate, texts)
    about["shown"] = shown_words(inputs) if len(by_replicate) > 1 else ""
    return {**about, "models": models, "words": [*words], "replicates": replicates}


def compositions(replicates: Sequence[ReplicateTables]) -> pd.DataFrame:
    """Return replicate, file, number and composition of every held-out problem (results have numbers for names)."""
    held_out, columns = pc.field("group") == HELDOUT, [*PAIR, "cluster"]
    tables = {place.name: place.tables[RESULTS] for place in replicates}
    parts = {name: pq.read_table(path, columns=columns, filters=held_out).to_pandas() for name, path in tables.items()}
    return pd.concat([part.drop_duplicates(PAIR).assign(replicate=name) for name, part in parts.items()])


def columns(rows: pd.DataFrame, order: Sequence[str]) -> Row:
    """Return level, file, number, composition of its problems; by model 100 log10 P, or % right, and outcome."""
    problems = rows.drop_duplicates(PAIR).groupby("level").head(PER_LEVEL)
    places = pd.MultiIndex.from_frame(problems[PAIR])
    wide = rows.set_index([*PAIR, "arm"])[["p", "code"]].unstack("arm").reindex(places).astype(object)
    wide = wide.where(wide.notna(), None)
    named = {name: problems[name].tolist() for name in ("level", "file", "problem", "cluster")}
    return named | {key: [wide[key][model].tolist() for model in order] for key in ("p", "code")}


def answers(inputs: Inputs, models: Sequence[str], problems: Mapping[str, list[Any]], replicate: str) -> dict[str, Any]:
    """Return prompt, gold completion and the first answer of each model (None: not kept), by the problem's place.

    ``MOST`` characters in all replicates of which there are texts.
    """
    tables = inputs.problems[replicate]
    places = pd.DataFrame({name: problems[name] for name in PAIR})
    questions = dict[str, Any]()
    for file, part in places.groupby("file", sort=False):
        if file not in tables:
            continue
        folders = [rollouts_of(inputs, replicate, model, str(file)) for model in models]
        responses = [dict(first_completions(folder, part["problem"].tolist())) if folder else {} for folder in folders]
        asked = tables[str(file)].take(part["problem"].tolist()).to_pylist()
        for (place, number), row in zip(part["problem"].items(), asked, strict=True):
            texts = [cut(rows[number]["response"]) if number in rows else None for rows in responses]
            questions[str(place)] = {**question(row, number), "answers": texts}
    left, chosen = MOST // len(inputs.problems), dict[str, Any]()
    rank = pd.Series(problems["level"]).groupby(problems["level"]).cumcount()
    for place in rank.sort_values(kind="stable").index.astype(str):  # of each level the first that fit
        left -= len(json.dumps(questions.get(place)))
        if place in questions and left > 0:
            chosen[place] = questions[place]
    return chosen


def missing(inputs: Inputs, known: Mapping[str, Any], texts: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each thing that the explorer cannot show yet."""
    lines = []
    if without := [name for name in inputs.seeds if name not in known]:
        lines.append(f"There are no figures by problem yet of {', '.join(without)}.")
    done = {name for seed in inputs.seeds for name in (seed, seed.split("-")[0])}
    folders = Path(inputs.settings.checkpoints).glob("seed*") if inputs.settings.checkpoints else ()
    if running := sorted({folder.name for folder in folders} - done):
        lines.append(f"Not evaluated yet: {', '.join(running)}.")
    if not any(texts.values()):
        lines.append("The texts of problems are not here: they need the study’s problem files (data=…).")
    elif not inputs.starting("rollouts/"):
        lines.append(f"The texts of problems are those of {' and '.join(texts)}; of answers only verdicts were kept.")
    elif len(known) > 1:
        lines.append(f"The texts of answers are those of {inputs.kept} only.")
    return lines


def run_points(inputs: Inputs) -> Row:
    """Return the figure whose dots are means over runs, and every run's evaluations; {} where there are none."""
    if POINTS not in inputs:
        return {}
    points = pd.read_csv(inputs.files[POINTS], dtype={"run": str})[["size", "step", "run", "flops", "loss"]]
    return {"figure": MAIN[SCALING], "points": json.loads(points.to_json(orient="values"))}


def validation(inputs: Inputs) -> list[Row]:
    """Return problems of the validation files with a completion of each step, of every run of one replicate."""
    names = sorted(inputs.starting(f"{VALIDATION}/"), key=lambda name: int(name.split("/")[3]))
    read = {name: read_rows(inputs.files[name]) for name in names}
    sources = sources_of(inputs, {str(row["gts"]) for rows in read.values() for row in rows if "gts" in row})
    problems: dict[tuple[str, int], Row] = {}
    for name, rows in read.items():
        _, seed, run, step = name.split("/")
        recipe = f"runs/{seed}/{run}/recipe.json"
        settings = inputs.json(recipe)["settings"] if recipe in inputs else {}
        for row in rows if not rows or "problem" in rows[0] else of_verl(rows, sources):
            truth, number = {"ground_truth": row["ground_truth"]}, row["problem"]
            asked = {**row, "level": 0, "group": "", "prompt": [{"content": row["prompt"]}], "extra_info": None}
            about: Row = {"run": (arm := run.removeprefix("stage2-")), "title": styles_of(inputs, [arm])[arm].title}
            about |= {"source": source_words(row["data_source"]), "problem": number}
            about["of"] = next((settings[key] for key in STEPS if key in settings), None)
            if (run, number) not in problems:
                problems[run, number] = {**about, **question({**asked, "reward_model": truth}, number), "steps": []}
            shown = {"step": int(step), "right": row["right"], "text": cut(row["completion"])}
            problems[run, number]["steps"].append(shown)
    return [problems[key] for key in sorted(problems)]


def source_words(source: str) -> str:
    """Return group and level of a data source: ``held-out functions, level 2``."""
    level, group = level_and_group(source)
    return f"{group_title(group)}, {level_name(level)}" if level else group_title(group)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a validation, as the single-file engine writes them or, in a folder ``validation``, verl."""
    rows = [parse_json_object(line, str(path), AGAIN) for line in path.read_text().splitlines()]
    for row in rows:
        check_shape(row, SHAPE_OF_VERL if path.parent.name == VALIDATION else SHAPE, path, AGAIN)
    return rows


def of_verl(rows: Sequence[Row], sources: Mapping[str, str]) -> list[Row]:
    """Return rows of verl as the single-file engine writes them: of each data source the first three problems."""
    shown, seen, asked = list[Row](), Counter[str](), set[str]()
    for number, row in enumerate(rows):
        source = sources.get(row["gts"], VALIDATION)
        if row["input"] in asked or seen[source] == OF_A_SOURCE:
            continue
        asked.add(row["input"])
        seen[source] += 1
        right = (row["acc"] if "acc" in row else row["score"]) >= 1
        about = {"problem": number, "data_source": source, "ground_truth": row["gts"], "right": right}
        shown.append({**about, "prompt": row["input"], "completion": row["output"]})
    return shown


def sources_of(inputs: Inputs, truths: set[str]) -> dict[str, str]:
    """Return the data source, which verl does not write, by ground truth, from the study's problem files."""
    found, wanted = dict[str, str](), pa.array(sorted(truths), pa.string())
    for name in inputs.starting("data/") if truths else ():
        if "reward_model" not in pq.read_schema(inputs.files[name]).names:  # rows for SFT
            continue
        table = pq.read_table(inputs.files[name], columns=["data_source", "reward_model"])
        column = pc.struct_field(table["reward_model"], "ground_truth")
        asked = pc.is_in(column, wanted)
        found |= zip(column.filter(asked).to_pylist(), table["data_source"].filter(asked).to_pylist(), strict=True)
    return found
