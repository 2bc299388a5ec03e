"""What the page shows on a click or at a slider: the problem behind a dot, and problems at successive steps of RL."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.data.json_files import NUMBER, check_shape, parse_json_object
from compositionality.evaluate.results import ReplicateTables
from compositionality.evaluate.summary import HELDOUT
from compositionality.evaluate.table import RESULTS
from compositionality.report.gold_figures import starts_of
from compositionality.report.page.figure import PageFigure, styles_of
from compositionality.report.page.inputs import AGAIN, MAIN, POINTS, SCALING, VALIDATION, Inputs
from compositionality.report.page.samples import cut, first_completions, outcomes, question, rollouts_of

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
    known = {str(name): columns(part, order) for name, part in rows.groupby("replicate", sort=False)}
    first = known.get(inputs.seeds[0])
    texts = answers(inputs, order, first) if first else {}
    replicates = [
        {**part, "name": name, "texts": texts if name == inputs.seeds[0] else {}} for name, part in known.items()
    ]
    about = {"figure": drawn.name, "exact": exact, "missing": missing(inputs, known, texts)}
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


def answers(inputs: Inputs, models: Sequence[str], problems: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return prompt, gold completion and the first answer of each model (None: not kept), by the problem's place.

    ``MOST`` characters in all.
    """
    places = pd.DataFrame({name: problems[name] for name in PAIR})
    found = dict[str, Any]()
    for file, part in places.groupby("file", sort=False):
        if file not in inputs.problems:
            continue
        folders = [rollouts_of(inputs, model, str(file)) for model in models]
        said = [dict(first_completions(folder, part["problem"].tolist())) if folder else {} for folder in folders]
        asked = inputs.problems[str(file)].take(part["problem"].tolist()).to_pylist()
        for (place, number), row in zip(part["problem"].items(), asked, strict=True):
            texts = [cut(rows[number]["response"]) if number in rows else None for rows in said]
            found[str(place)] = {**question(row, number), "answers": texts}
    left, kept = MOST, dict[str, Any]()
    rank = pd.Series(problems["level"]).groupby(problems["level"]).cumcount()
    for place in rank.sort_values(kind="stable").index.astype(str):  # of each level the first that fit
        left -= len(json.dumps(found.get(place)))
        if place in found and left > 0:
            kept[place] = found[place]
    return kept


def missing(inputs: Inputs, known: Mapping[str, Any], texts: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each thing that the explorer cannot show yet."""
    lines = []
    if without := [name for name in inputs.seeds if name not in known]:
        lines.append(f"No figures by problem yet of {', '.join(without)}.")
    done = {name for seed in inputs.seeds for name in (seed, seed.split("-")[0])}
    folders = Path(inputs.settings.checkpoints).glob("seed*") if inputs.settings.checkpoints else ()
    if running := sorted({folder.name for folder in folders} - done):
        lines.append(f"Not evaluated yet: {', '.join(running)}.")
    if not texts:
        lines.append("The problems’ texts are not here: they need the study’s problem files (data=…).")
    elif not inputs.starting("rollouts/"):
        lines.append(f"Problems are those of {inputs.seeds[0]}, made again; the answers’ texts were not kept.")
    elif len(known) > 1:
        lines.append(f"The answers’ texts are those of {inputs.seeds[0]} alone.")
    return lines


def run_points(inputs: Inputs) -> Row:
    """Return the figure whose dots are means over runs, and every run's evaluations; {} where there are none."""
    if POINTS not in inputs:
        return {}
    points = pd.read_csv(inputs.files[POINTS], dtype={"run": str})[["size", "step", "run", "flops", "loss"]]
    return {"figure": MAIN[SCALING], "points": json.loads(points.to_json(orient="values"))}


def validation(inputs: Inputs) -> list[Row]:
    """Return problems of the validation files with a completion of each step, of every run of the first replicate."""
    names = sorted(inputs.starting(f"{VALIDATION}/"), key=lambda name: int(name.split("/")[3]))
    read = {name: read_rows(inputs.files[name]) for name in names}
    sources = sources_of(inputs, {str(row["gts"]) for rows in read.values() for row in rows if "gts" in row})
    problems: dict[tuple[str, int], Row] = {}
    for name, rows in read.items():
        _, seed, run, step = name.split("/")
        recipe = f"runs/{seed}/{run}/recipe.json"
        of = inputs.json(recipe)["settings"] if recipe in inputs else {}
        for row in rows if not rows or "problem" in rows[0] else of_verl(rows, sources):
            truth, number = {"ground_truth": row["ground_truth"]}, row["problem"]
            asked = {**row, "level": 0, "group": "", "prompt": [{"content": row["prompt"]}], "extra_info": None}
            about = {"run": run.removeprefix("stage2-"), "source": row["data_source"], "problem": number}
            about["of"] = next((of[key] for key in STEPS if key in of), None)
            if (run, number) not in problems:
                problems[run, number] = {**about, **question({**asked, "reward_model": truth}, number), "steps": []}
            shown = {"step": int(step), "right": row["right"], "text": cut(row["completion"])}
            problems[run, number]["steps"].append(shown)
    return [problems[key] for key in sorted(problems)]


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
        known = pc.struct_field(table["reward_model"], "ground_truth")
        asked = pc.is_in(known, wanted)
        found |= zip(known.filter(asked).to_pylist(), table["data_source"].filter(asked).to_pylist(), strict=True)
    return found
