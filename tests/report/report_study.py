"""A small study in the files that the steps before the report write; its numbers are drawn at random."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compositionality.data.artefact import Recipe, file_hash, new_artefact, read_manifest
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.evaluate.collect import EvaluationSettings, evaluate
from compositionality.evaluate.failures import LABELS_SCHEMA, count_classes, read_labels
from compositionality.evaluate.passk import PasskSettings, passk
from compositionality.evaluate.table import write
from compositionality.evaluate.types import CHAIN, CORRECT
from compositionality.report.page.inputs import INJECTION, ReportSettings
from compositionality.report.record import RecordSettings
from compositionality.rollout.settings import recipe
from compositionality.rollout.store import shard_table
from compositionality.study.registered import write_manifest
from compositionality.tasks.diagnosis import FAILURES, ROLES
from compositionality.train.metrics import COMPLETIONS
from compositionality.train.training_report import TrainingReport
from compositionality.types import Completion, Problem, Reason, Verdict

Settings = TypeVar("Settings", ReportSettings, RecordSettings)
MODELS = ("stage1", "rl-level1", "rl-level2", "rft")
LEVELS = (1, 2, 3)
SETS = ("trained", "heldout")
PER_LEVEL = 8
SAMPLES = 16
"""Completions of each problem for pass@k."""
ATTACK = '</script><img src=x onerror="window.attacked=1"><svg onload="window.attacked=1"> {{ 7*7 }} & "quoted"'
"""What a model could write to take over a page."""
DECISIONS = ("supported", "contradicted", "undecided", "not run", "not testable")
ORIGINS = ("paper", "paper", "variant", "own", "variant")
REASONS = (Reason.WRONG, Reason.NO_ANSWER, Reason.MALFORMED)
EVERYTHING = ("claims", "passk", "failures", "runs", "data", "exact", "countdown")
PROGRAM = "def main_solution(x):\n    return func_17(x)"
TRUTH = {"ref_output": "abc", "ref_code": PROGRAM, "ref_input": {"x": "cba"}}
DECAY = {"stage1": 0.3, "rl-level1": 0.35, "rl-level2": 0.8, "rft": 0.5, "multi-base": 0.4, "multi-rl-level1to2": 0.7}
SIZES = (1e4, 191_016, 1e6, 1e7)
"""Of models, of which the scaling laws are fitted."""
PAIRS = ("sft-vanilla", "rl-vanilla", "sft-bridge", "rl-bridge")
"""Of behaviour injection: before and after RL."""
DECAY |= dict(zip(PAIRS, (0.7, 0.72, 0.6, 0.85), strict=True))
"""Accuracy at a level over that at the level before."""


def write_json(path: Path, content: Any, inputs: Mapping[str, Path] | None = None, step: str = "by hand") -> Path:
    """A JSON artefact."""
    with new_artefact(path, Recipe(step, {"made": path.name}, inputs or {})) as partial:
        partial.write_text(json.dumps(content, indent=1))
    return path


def make_study(root: Path, *, n_seeds: int = 1, parts: Sequence[str] = EVERYTHING[:-1]) -> ReportSettings:
    """Folders results/tiny, checkpoints/tiny, data/tiny … below ``root``, and the report's settings for them."""
    study, data = root / "results" / "tiny", root / "data" / "tiny"
    folder, names = data / "seed0" / "string_task", {f"test_{name}": name for name in SETS}
    problems = {file: _problems(folder / f"{file}.parquet", name, LEVELS) for file, name in names.items()}
    _times(study / "section41_42")
    with pytest.MonkeyPatch.context() as patch:  # what evaluations print takes half of their time
        for printed in ("collect.print_summary", "passk.print_curves"):
            patch.setattr(f"compositionality.evaluate.{printed}", lambda *_: None)
        for seed in range(n_seeds):
            place = of_seed(study, seed)
            evaluate_models(place / "section41_42", problems, MODELS, seed)
            if "exact" in parts:
                give_exact(place / "section41_42", seed)
            if "passk" in parts:
                _pass_at_k(place / "section44", problems["test_heldout"], seed)
            if "failures" in parts:
                _failures(place / "section45", problems, seed)
            if "runs" in parts:
                _runs(of_seed(root / "checkpoints" / "tiny", seed), seed)
                _iterations(of_seed(data, seed))
        if "countdown" in parts:
            _countdown(root)
    if "claims" in parts:
        write_json(study / "claims.json", claims(n_seeds), step="claims")
    return ReportSettings(
        study, study / "report", str(root / "results" / "tiny-countdown") if "countdown" in parts else "",
        str(root / "checkpoints" / "tiny") if "runs" in parts else "", str(data) if "data" in parts else "",
    )  # fmt: skip


def make_injection(root: Path, *, n_seeds: int = 2, decided: bool = True) -> ReportSettings:
    """A study of behaviour injection of two pairs of models, by the code that evaluates; ``decided``: with claims."""
    study, data = root / "results" / "injection", root / "data" / "injection"
    problems = {
        f"igsm_task-{file}": _problems(data / "seed0" / "igsm_task" / f"{file}.parquet", group, levels)
        for file, group, levels in (("test", "igsm", (3, 4)), ("test_ood", "ood", (5,)))
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("compositionality.evaluate.collect.print_summary", lambda *_: None)
        for seed in range(n_seeds):
            evaluate_models(of_seed(study, seed) / INJECTION, problems, PAIRS, seed)
    if decided:
        write_json(study / "claims.json", claims(n_seeds), step="claims")
    return ReportSettings(study, study / "report", data=str(data), section=INJECTION)


def copied_to(root: Path, old: Path, settings: Settings) -> Settings:
    """The same settings, of a copy of the folder ``old`` that a test may change."""

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [*map(moved, value)]
        return type(value)(str(value).replace(str(old), str(root))) if isinstance(value, str | Path) else value

    shutil.copytree(old, root, dirs_exist_ok=True)
    return replace(settings, **{entry.name: moved(getattr(settings, entry.name)) for entry in fields(settings)})


def of_seed(folder: Path, seed: int) -> Path:
    return folder / f"seed{seed}"


def _problems(path: Path, name: str, levels: Sequence[int]) -> Path:
    truth = {"target": 3, "numbers": [1, 2]} if name == "countdown" else TRUTH
    source = "countdown-clean" if name == "countdown" else f"string-{name}"
    made = [
        Problem(
            f"{source}-level{level}", level, name, f"p{index} of level {level} {ATTACK}", json.dumps(truth), index,
            {"functions": []},
        )
        for level in levels
        for index in range(PER_LEVEL)
    ]  # fmt: skip
    facts = {"rows": len(made), "by_level": {str(level): PER_LEVEL for level in levels}}
    with new_artefact(path, Recipe("create_problems", {"mode": "clean", "split": "test", "seed": 7}), facts) as partial:
        write_table(to_table(made, "test"), partial)
    return path


def solved(model: str, level: int, seed: int) -> int:
    """How many problems of a level a model solves: at least one, and some unsolved ones for every other reason."""
    random = np.random.default_rng([seed, level, *model.encode()])
    share = 0.95 * DECAY[model] ** (level - 1) * random.uniform(0.85, 1.1)
    return int(np.clip(round(share * PER_LEVEL), 1, PER_LEVEL - len(REASONS)))


def _groups(problems: Path) -> list[tuple[int, str]]:
    """Level and group of every problem."""
    table = pa.parquet.read_table(problems, columns=["level", "group"])
    return list(zip(table["level"].to_pylist(), table["group"].to_pylist(), strict=True))


def evaluate_models(section: Path, problems: Mapping[str, Path], models: Sequence[str], seed: int) -> None:
    """The results of one seed, by the code that evaluates, from rollouts that are complete already."""
    paths = {model: _model(section.parent / "models" / model / "final", model) for model in models}
    settings = EvaluationSettings(
        models=[f"{model}:{path}" for model, path in paths.items()],
        problems=[f"{name}:{path}" for name, path in problems.items()],
        output=section, engine="openai", base_url="http://localhost", seed=seed,
    )  # fmt: skip
    for model in models:
        for name, path in problems.items():
            job = settings.collection(paths[model], str(path), section / "rollouts" / model / name)
            with new_artefact(job.output, recipe(job)) as partial:
                partial.mkdir()
                write_table(_shard(model, _groups(path), seed), partial / "shard-00000.parquet")
    evaluate(settings)


def give_exact(section: Path, seed: int) -> None:
    """Exact probabilities, drawn at random, in the table of one seed; at level 2 of pairs of three functions."""
    path, random = section / "results.parquet", np.random.default_rng(seed)
    rows, known = (
        pq.read_table(path).to_pandas(),
        {file: read_manifest(file) for file in (path, section / "training.json")},
    )
    pairs = [f"func_{1 + number % 3}(func_{1 + number // 3 % 3}(x))" for number in rows["problem"]]
    rows["cluster"] = rows["cluster"].where(rows["level"] != 2, pd.Series(pairs, rows.index))
    rows["skills"] = [["func_1", "func_2", "func_3"] if level == 2 else [] for level in rows["level"]]
    lists = [(-100 * random.exponential(1, len(ROLES) * level)).astype(int) for level in rows["level"]]
    write(rows.assign(gold_log_prob_by_step_role=lists, gold_log_prob=[values.sum() / 100 for values in lists]), path)
    for file, made in known.items():
        inputs = made.inputs | ({"table": file_hash(path)} if "table" in made.inputs else {})
        write_manifest(file, {**made.model_dump(), "inputs": inputs})


def _model(folder: Path, model: str) -> str:
    """A model folder; that of RL on level 1 says that no update had signal."""
    signal = {"rl-level1": 0, "rl-level2": 100}.get(model)
    report = TrainingReport(20, 0 if signal else 20, 160, signal, 640, 12345)
    facts = {} if signal is None else {"training": asdict(report)}
    with new_artefact(folder, Recipe("train_grpo", {}), facts) as partial:
        partial.mkdir()
        (partial / "weights").write_text(model)
    return str(folder)


def _shard(model: str, groups: Sequence[tuple[int, str]], seed: int) -> pa.Table:
    verdicts = []
    for number, (level, _) in enumerate(groups):
        place = number % PER_LEVEL
        right = place < solved(model, level, seed)
        reason = Reason.CORRECT if right else REASONS[place % len(REASONS)]
        verdicts.append(Verdict(float(right), reason, None if reason is Reason.NO_ANSWER else ATTACK))
    texts = [f'func_99(ab) = "ba". {model}, seed {seed}, says {ATTACK} {number}' for number in range(len(groups))]
    done = [Completion(text, 3, "stop") for text in texts]
    return shard_table([(n, 0) for n in range(len(groups))], groups, done, verdicts)


def _countdown(root: Path) -> None:
    problems = _problems(root / "data" / "tiny-countdown" / "test.parquet", "countdown", (3, 4, 5))
    section = of_seed(root / "results" / "tiny-countdown", 0) / "section43"
    evaluate_models(section, {"test": problems}, ("multi-base", "multi-rl-level1to2"), 0)


def evaluated(
    folder: Path,
    shares: Mapping[tuple[str, str, int], float],
    seed: int = 0,
    per_level: int = 10,
    source: str = "string-{group}-level{level}",
    training: Mapping[str, TrainingReport] | None = None,
) -> Path:
    """results.parquet in ``folder``, of which so many answers are right by arm, group and level."""
    names = [key for key in shares for _ in range(per_level)]
    rows = pd.DataFrame(names, columns=["arm", "group", "level"])
    numbers = rows.groupby("arm").cumcount()
    share = pd.Series([shares[key] for key in names])
    right = (numbers % per_level < (share * per_level).round()).astype(int)
    named = [source.format(group=group, level=level) for _, group, level in names]
    rows = rows.assign(
        file="test", problem=numbers, data_source=named, cluster=numbers.astype(str), n=1, judged=1, right=right,
        tokens=3 + seed,
    )  # fmt: skip
    settings = {"replicate": {"seed": seed}, "sampling": {"n_samples": 1, "temperature": 1.0}}
    inputs = {"rollouts": write_json(folder / "answers.json", seed)}
    with new_artefact(folder / "results.parquet", Recipe("evaluate_accuracy", settings, inputs)) as partial:
        write(rows, partial)
    reports = {arm: asdict(report) for arm, report in (training or {}).items()}
    write_json(folder / "training.json", reports, {"table": folder / "results.parquet"})
    return folder / "results.parquet"


def _pass_at_k(section: Path, problems: Path, seed: int) -> None:
    """pass@k of one seed, by the code that computes it, from rollouts made here."""
    models, groups = ("stage1", "rl-level2"), _groups(problems)
    random = np.random.default_rng(seed)
    for model in models:
        chances = [0.9 * DECAY[model] ** (level - 1) * random.beta(2, 2) for level, _ in groups]
        right = [bool(random.random() < chance) for chance in chances for _ in range(SAMPLES)]
        units = [(problem, sample) for problem in range(len(groups)) for sample in range(SAMPLES)]
        done = [Completion(f"seed {seed}", 3, "stop")] * len(units)
        verdicts = [Verdict(float(one), Reason.CORRECT if one else Reason.WRONG) for one in right]
        settings = {"n_samples": SAMPLES, "temperature": 1.0}
        folder = section / "rollouts" / model / problems.stem
        with new_artefact(folder, Recipe("collect_rollouts", settings, {"problems": problems})) as partial:
            partial.mkdir()
            table = shard_table(units, [groups[problem] for problem, _ in units], done, verdicts)
            write_table(table, partial / "shard-00000.parquet")
    rollouts = [f"{model}:{section / 'rollouts' / model / problems.stem}" for model in models]
    passk(
        PasskSettings(
            rollouts=rollouts, problems=[f"{problems.stem}:{problems}"], output=section, n_samples=SAMPLES,
        )
    )  # fmt: skip


def _failures(section: Path, problems: Mapping[str, Path], seed: int) -> None:
    """labels.parquet with classes drawn at random, and what the code for failure modes makes of it."""
    random = np.random.default_rng(seed)
    rows = []
    for model in MODELS:
        for name, path in problems.items():
            for number, (level, _) in enumerate(_groups(path)):
                right = random.random() < 0.95 * DECAY[model] ** (level - 1)
                names = [f"func_{function}" for function in random.integers(1, 6, 2)]
                rows.append(
                    {
                        "arm": model, "file": name, "problem": number, "sample": 0,
                        "group": name.removeprefix("test_"), "level": level,
                        "data_source": f"string-{name.removeprefix('test_')}-level{level}",
                        "cluster": f"c{number}", "class": "correct" if right else str(random.choice(FAILURES[1:])),
                        "outer": names[0] if level <= 2 else None, "inner": names[1] if level == 2 else None,
                        **dict.fromkeys(CHAIN, right),
                        "applied": names[: min(2, level)], "wrong": [not right] * min(2, level),
                    }
                )  # fmt: skip
    rollouts = section.parent / "section41_42/rollouts"
    write_labels(
        section, rows, {f"rollouts/{one}/{name}": rollouts / one / name for one in MODELS for name in problems}
    )


def write_labels(folder: Path, rows: Sequence[dict[str, Any]], inputs: Mapping[str, Path]) -> None:
    """labels.parquet and results.parquet as the code for failure modes makes them."""
    labels = folder / "labels.parquet"
    with new_artefact(labels, Recipe("find_failures", {}, inputs)) as partial:
        write_table(pa.Table.from_pylist(rows, schema=LABELS_SCHEMA), partial)
    with new_artefact(folder / "results.parquet", Recipe("find_failures", {}, {"labels": labels})) as partial:
        write(count_classes(read_labels(labels)), partial)


def _times(section: Path) -> None:
    lines = [("9", "seed0", "3", "stage1", "40"), ("9", "seed0", "3", "stage1", "700"), ("9", "", "1", "page", "5")]
    section.mkdir(parents=True)
    (section / "times.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    machine = {"cpu": "A CPU", "cores": 2, "memory_gib": 8.0, "gpus": [], "system": "Linux", "python": "3.11.7"}
    (section / "machine.json").write_text(json.dumps(machine))


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
                    row |= {"critic/acc/mean": step / 40 + place / 4, COMPLETIONS: step // 5 * 32}
                for name in SETS:
                    for level in LEVELS:
                        key = f"val-core/string-{name}-level{level}/acc/mean@1"
                        row[key] = min(1.0, (step / 20 + place + seed / 10) / level / 2)
                stream.write(json.dumps(row) + "\n")
                write_validation(run / "samples" / f"validation_{step}.jsonl", step)


def write_validation(file: Path, step: int) -> None:
    """Completions of two problems at a step of a run: the first is right from step 10 on; a model writes the attack."""
    rows = [
        {
            "problem": number, "data_source": f"string-heldout-level{number + 1}", "ground_truth": json.dumps(TRUTH),
            "prompt": f"prompt {number} {ATTACK}", "right": number == 0 and step >= 10,
            "completion": '{"output": "abc"}' if number == 0 and step >= 10 else f"step {step} says {ATTACK}",
        }
        for number in range(2)
    ]  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _iterations(data: Path) -> None:
    for number in range(2):
        folder = data / "string_task" / "stage2_level2_rft" / f"iteration{number}" / "rollouts"
        facts = {"levels": [{"group": "trained", "level": 2, "n": 40, "correct": 10 + number}]}
        with new_artefact(folder, Recipe("collect_rollouts", {}), facts) as partial:
            partial.mkdir()


def claims(n_seeds: int) -> dict[str, Any]:
    """A claim of every decision, and a control."""

    def comparison(place: int, verdict: str) -> dict[str, Any]:
        known = verdict != "not run"
        return {
            "comparison": f"heldout L3: rl-level2 − stage1 > {place}", "metric": "accuracy",
            "group": "heldout", "level": 3, "model": "rl-level2", "base": "stage1", "rule": ">",
            "threshold": 0.05 * place, "decision": verdict,
            "decision_these_seeds": verdict, "interval": "problems", "difference": 0.2 - 0.1 * place if known else None,
            "low": 0.1 - 0.1 * place if known else None, "high": 0.3 - 0.1 * place if known else None,
            "values": [0.2 - 0.1 * place] * n_seeds if known else None,
        }  # fmt: skip

    rows = [
        {
            "claim": f"H{place + 1}", "origin": ORIGINS[place],
            "hypothesis": f"H{place + 1}", "text": f"Statement {place} <b>{ATTACK}</b>",
            "paper": "level 3: about 5 % before", "source": "§4.1", "decision": verdict,
            "decision_these_seeds": "supported", "needs": "about 12 seeds" if verdict == "undecided" else None,
            "reason": "rl-level2 hardly trained" if verdict == "not testable" else None, "primary": place == 0,
            "p": 0.004 if place == 0 else None, "p_holm": 0.02 if place == 0 else None,
            "decision_holm": "supported" if place == 0 else None,
            "comparisons": [comparison(place, verdict)],
        }
        for place, verdict in enumerate(DECISIONS)
    ]  # fmt: skip
    seeds = [f"seed{seed}" for seed in range(n_seeds)]
    return {"claims": rows, "controls": rows[:1], "n_seeds": n_seeds, "seeds": seeds, "notes": ["A note."]}


def registered_claims(*effects: float) -> dict[str, Any]:
    """Those of a registered study, its seeds with these effects on the first primary claim."""
    known = claims(len(effects)) | {"registration": {"registration": "tiny"}}
    known["claims"][0]["comparisons"][0] |= {"measure": CORRECT, "values": [*effects], "splits": None}
    return known
