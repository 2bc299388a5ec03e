"""A whole study made by hand, in the files that the steps before the report write; its figures mean nothing."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.artefact import Recipe, file_hash, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.report.page.settings import ReportSettings
from compositionality.rollout.store import SCHEMA
from compositionality.tasks import Problem

MODELS = ("stage1", "rl-level1", "rl-level2", "rft")
LEVELS = (1, 2, 3)
SETS = ("trained", "heldout")
PER_LEVEL = 4
ATTACK = '</script><img src=x onerror="window.attacked=1"><svg onload="window.attacked=1"> {{ 7*7 }} & "quoted"'
"""What a model could write to take over a page."""
VERDICTS = ("supported", "contradicted", "undecided", "not run")


def write_json(path: Path, content: Any, inputs: Mapping[str, Path] | None = None, step: str = "by hand") -> Path:
    """A JSON artefact."""
    with new_artefact(path, Recipe(step, {"made": path.name}, inputs or {})) as partial:
        partial.write_text(json.dumps(content, indent=1))
    return path


def make_study(
    root: Path, *, n_seeds: int = 1, parts: Sequence[str] = ("claims", "passk", "failures", "runs", "data")
) -> ReportSettings:
    """Folders results/tiny, checkpoints/tiny, data/tiny … below ``root``, and the report's settings for them."""
    study, data = root / "results" / "tiny", root / "data" / "tiny"
    problems = {f"test_{name}": _problems(data / "string_task" / f"test_{name}.parquet", name) for name in SETS}
    for model in MODELS:
        for name, path in problems.items():
            _rollouts(study / "section41_42" / "rollouts" / model / name, path)
    _accuracy(study, problems, n_seeds)
    _times(study)
    if "claims" in parts:
        write_json(study / "claims.json", claims(n_seeds), step="claims")
    if "passk" in parts:
        write_json(study / "section44" / "passk.json", pass_at_k(), step="passk")
    if "failures" in parts:
        failures(study / "section45")
    if "runs" in parts:
        for seed in range(n_seeds):
            _runs(root / "checkpoints" / ("tiny" if seed == 0 else f"tiny-seed{seed}"), seed)
        _iterations(data)
    if "countdown" in parts:
        _countdown(root / "results" / "tiny-countdown")
    return ReportSettings(
        study, study / "report", str(root / "results" / "tiny-countdown") if "countdown" in parts else "",
        str(root / "checkpoints" / "tiny") if "runs" in parts else "", str(data) if "data" in parts else "",
    )  # fmt: skip


def _problems(path: Path, name: str) -> Path:
    made = [
        Problem(
            f"string-{name}-level{level}", level, name, f"p{index} of level {level} {ATTACK}",
            json.dumps({"ref_output": "abc"}), index, {"functions": []},
        )
        for level in LEVELS
        for index in range(PER_LEVEL)
    ]  # fmt: skip
    facts = {"rows": len(made), "by_level": {str(level): PER_LEVEL for level in LEVELS}}
    with new_artefact(path, Recipe("create_problems", {"mode": "clean", "split": "test", "seed": 7}), facts) as partial:
        write_table(to_table(made, "test"), partial)
    return path


def _rollouts(folder: Path, problems: Path) -> None:
    rows = [
        {
            "problem": number, "sample": 0, "response": f"{folder.parent.name} says {ATTACK} {number}", "tokens": 3,
            "finish_reason": "stop", "score": 0.0, "reason": ("correct", "wrong", "no_answer", "malformed")[number % 4],
            "answer": ATTACK,
        }
        for number in range(PER_LEVEL * len(LEVELS))
    ]  # fmt: skip
    with new_artefact(folder, Recipe("collect_rollouts", {"engine": "builtin"}, {"problems": problems})) as partial:
        partial.mkdir()
        write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial / "shard-00000.parquet")


def accuracy_rows(models: Sequence[str], sets: Sequence[str], n_seeds: int) -> list[dict[str, Any]]:
    """Falling accuracies."""
    return [
        {
            "model": model, "problems": f"test_{functions}", "functions": functions, "level": level,
            "data_source": f"string-{functions}-level{level}", "accuracy": (0.9 - 0.1 * place) / level,
            "low": (0.8 - 0.1 * place) / level, "high": 1.0 / level, "problems_low": 0.1, "problems_high": 0.9,
            "interval": "problems" if n_seeds == 1 else "seeds and problems", "values": [0.5] * n_seeds,
            "n_seeds": n_seeds, "n_problems": PER_LEVEL,
        }
        for functions in sets
        for level in LEVELS
        for place, model in enumerate(models)
    ]  # fmt: skip


def _summary(models: Sequence[str], sets: Sequence[str], problems: Mapping[str, Path], n_seeds: int) -> dict[str, Any]:
    return {
        "seeds": [{"name": f"seed{seed}", "sampling_seed": seed} for seed in range(n_seeds)], "models": list(models),
        "problems": {name: file_hash(path) for name, path in problems.items()},
        "sampling": {"n_samples": 1, "temperature": 1.0, "engine": "builtin"},
        "accuracy": accuracy_rows(models, sets, n_seeds), "differences": [], "claims": [],
    }  # fmt: skip


def _accuracy(study: Path, problems: Mapping[str, Path], n_seeds: int) -> None:
    sources = {}
    for seed in range(n_seeds):
        folder = study if seed == 0 else study.with_name(f"{study.name}-seed{seed}")
        sources[f"seed{seed}/accuracy.json"] = write_json(folder / "section41_42" / "accuracy.json", {"seed": seed})
    content = _summary(MODELS, SETS, problems, n_seeds)
    write_json(study / "section41_42" / "seeds.json", content, sources, step="summarise_seeds")


def _countdown(study: Path) -> None:
    content = _summary(("multi-base", "multi-rl-level1to2"), ("countdown",), {}, 1)
    write_json(study / "section43" / "seeds.json", content, step="summarise_seeds")


def _times(study: Path) -> None:
    lines = [("9", "0", "1", "section41_42/stage1_rft", "40"), ("9", "0", "0", "section41_42/run_seed", "700")]
    (study / "section41_42" / "times.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    machine = {"cpu": "A CPU", "cores": 2, "memory_gib": 8.0, "gpus": [], "system": "Linux", "python": "3.11.7"}
    (study / "section41_42" / "machine.json").write_text(json.dumps(machine))


def _runs(folder: Path, seed: int) -> None:
    for place, arm in enumerate(("rl-level1", "rl-level2")):
        run = folder / f"stage2-{arm}"
        run.mkdir(parents=True)
        settings = {"rollout.n": 4, "data.prompts_per_step": 8, "trainer.steps": 20}
        (run / "recipe.json").write_text(json.dumps({"step": "train", "settings": settings, "inputs": {}}))
        with (run / "metrics.jsonl").open("w") as stream:
            for step in range(0, 21, 5):
                row: dict[str, Any] = {"step": step}
                if step:
                    row["critic/acc/mean"] = step / 40 + place / 4
                for name in SETS:
                    for level in LEVELS:
                        key = f"val-core/string-{name}-level{level}/acc/mean@1"
                        row[key] = min(1.0, (step / 20 + place + seed / 10) / level / 2)
                stream.write(json.dumps(row) + "\n")


def _iterations(data: Path) -> None:
    for number in range(2):
        folder = data / "string_task" / "stage2_level2_rft" / f"iteration{number}" / "rollouts"
        facts = {"levels": {"string-trained-level2": {"n": 40, "correct": 10 + number}}}
        with new_artefact(folder, Recipe("collect_rollouts", {}), facts) as partial:
            partial.mkdir()


def claims(n_seeds: int) -> dict[str, Any]:
    """A claim of every verdict, and a control."""

    def comparison(place: int, verdict: str) -> dict[str, Any]:
        known = verdict != "not run"
        return {
            "comparison": f"heldout L3: rl-level2 − stage1 > {place}", "metric": "accuracy",
            "functions": "heldout", "level": 3, "model": "rl-level2", "base": "stage1", "rule": ">",
            "threshold": 0.05 * place, "verdict": verdict,
            "verdict_these_seeds": verdict, "interval": "problems", "difference": 0.2 - 0.1 * place if known else None,
            "low": 0.1 - 0.1 * place if known else None, "high": 0.3 - 0.1 * place if known else None,
        }  # fmt: skip

    rows = [
        {
            "claim": f"H{place + 1}", "hypothesis": f"H{place + 1}", "text": f"Statement {place} <b>{ATTACK}</b>",
            "paper": "level 3: about 5 % before", "source": "§4.1", "verdict": verdict,
            "verdict_these_seeds": "supported", "needs": "about 12 seeds" if verdict == "undecided" else None,
            "comparisons": [comparison(place, verdict)],
        }
        for place, verdict in enumerate(VERDICTS)
    ]  # fmt: skip
    seeds = [f"seed{seed}" for seed in range(n_seeds)]
    return {"claims": rows, "controls": rows[:1], "n_seeds": n_seeds, "seeds": seeds, "notes": ["A note."]}


def pass_at_k() -> dict[str, Any]:
    """Two models, both sets, three levels and all of them together."""
    ks = list(range(1, 33))
    curves = [
        {
            "model": model, "problems": f"test_{name}", "functions": name, "level": level, "n_problems": 4, "k": ks,
            "pass_at_k": [1 - math.exp(-k * (place + 1) / 9 / (level + 1)) for k in ks],
            "low": [max(0, 0.9 - math.exp(-k * (place + 1) / 9 / (level + 1))) for k in ks],
            "high": [min(1, 1.1 - math.exp(-k * (place + 1) / 9 / (level + 1))) for k in ks],
            "pass_hat_k": [0.5**k for k in ks], "coverage": 0.5, "coverage_low": 0.4, "coverage_high": 0.6,
        }
        for name in SETS
        for level in (0, *LEVELS)
        for place, model in enumerate(("stage1", "rl-level2"))
    ]  # fmt: skip
    pairs = [
        {
            "model": "rl-level2", "base": "stage1", "problems": "test_heldout", "functions": "heldout", "level": level,
            "n_problems": 4, "k": ks, "difference": [0.1] * 32, "low": [0.0] * 32, "high": [0.2] * 32,
            "crossover": {"k": 9, "low": 3, "high": None} if level == 1 else None,
        }
        for level in LEVELS
    ]  # fmt: skip
    return {
        "models": ["stage1", "rl-level2"], "n_samples": 32, "temperature": 1.0, "problems": {}, "draws": 2000,
        "curves": curves, "differences": pairs,
    }  # fmt: skip


def failures(folder: Path) -> None:
    """failure_modes.json and its figures."""
    from matplotlib.figure import Figure

    shares = [{"model": "stage1", "problems": "test_heldout", "functions": "heldout", "level": 3, "class": "correct",
               "share": 0.1, "low": 0.0, "high": 0.2, "n_problems": 4, "n_responses": 4}]  # fmt: skip
    content = {
        "models": ["stage1"],
        "classes": ["correct"],
        "shares": shares,
        "by_function": [],
        "by_pair": [],
        "judge": None,
    }
    write_json(folder / "failure_modes.json", content, step="failure_modes")
    for name in ("failure_modes", "functions"):
        drawing = Figure(figsize=(6, 3))
        drawing.subplots().bar([1, 2], [3, 4])
        for ending in ("svg", "png", "pdf"):
            with new_artefact(folder / f"{name}.{ending}", Recipe("failure_modes", {"figure": name})) as partial:
                drawing.savefig(partial, format=ending)
