"""The report: whole, traceable, refused when stale; the same bytes for the same inputs; a model's text is text."""

import base64
import csv
import gzip
import hashlib
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from report_study import (
    ATTACK,
    DECISIONS,
    LEVELS,
    MODELS,
    PER_LEVEL,
    claims,
    copied_to,
    evaluate_models,
    evaluated,
    give_exact,
    make_injection,
    make_study,
    of_seed,
    registered_claims,
    solved,
    write_json,
    write_validation,
)
from safetensors.numpy import save_file
from steps import typed

from compositionality.config.problem_sets import create_problem_set
from compositionality.data.artefact import Manifest, verify
from compositionality.data.git import code_version, commit_of
from compositionality.errors import UserError
from compositionality.evaluate.registration import read_registration
from compositionality.evaluate.summary import differences
from compositionality.evaluate.table import CLAIMED, is_paired, read
from compositionality.evaluate.types import ALL_LEVELS, CHAIN, CORRECT, DEEPEST
from compositionality.report import figures
from compositionality.report.page import figure as page_figure
from compositionality.report.page import problems as page_problems
from compositionality.report.page.build import report
from compositionality.report.page.claims import (
    claim_rows,
    claims_section,
    comparison_row,
    figures_of,
    first_claim,
    said,
)
from compositionality.report.page.content import (
    HeadlineComparison,
    comparison,
    finding,
    headline,
    model_size,
    study_line,
)
from compositionality.report.page.figure import WORDS, PageFigure
from compositionality.report.page.figures import accuracy, gold, page_figures
from compositionality.report.page.inputs import INJECTION, PAPERS, QUESTIONS, Inputs, ReportSettings, find_inputs
from compositionality.report.page.problems import (
    AT_MOST,
    DOTS,
    LONGEST,
    cut,
    explorer,
    meanings,
    samples,
    validation,
    worked_problem,
)
from compositionality.report.page.sentences import claim_sentence, noun_of, sentence
from compositionality.report.theme import arm_styles, rendered
from compositionality.rollout.store import read_rollouts
from compositionality.study import preflight
from compositionality.study import registered as registration

ROOT = Path(__file__).parents[2]
EXACT = ("gold_probability", "gold_roles", "hand_over")
WHY = (*EXACT, "passk", "failure_modes", "functions")
FIGURES = ("headline", "accuracy", "countdown", *WHY, "training", "budget")


@pytest.fixture
def copied(settings: ReportSettings, tmp_path: Path) -> ReportSettings:
    """A copy of the study, which a test may change."""
    return copied_to(tmp_path / "copy", settings.study.parents[1], settings)


@pytest.fixture(scope="module")
def inputs(settings: ReportSettings) -> Inputs:
    """What the study's page is made from."""
    return find_inputs(settings)


@pytest.fixture(scope="module")
def shown(inputs: Inputs) -> dict[str, PageFigure]:
    """Its figures by name."""
    return {figure.name: figure for figure in page_figures(inputs)}


@pytest.fixture(scope="module")
def bare_study(tmp_path_factory: pytest.TempPathFactory) -> ReportSettings:
    """A study of one seed of which only accuracy is known, its report written. Not to be changed."""
    made = make_study(tmp_path_factory.mktemp("bare"), parts=())
    report(made)
    return made


@pytest.fixture(scope="module")
def trained_study(tmp_path_factory: pytest.TempPathFactory) -> ReportSettings:
    """A study of one seed with its training runs and problems. Not to be changed."""
    return make_study(tmp_path_factory.mktemp("trained"), parts=("runs", "data"))


def check(settings: ReportSettings) -> None:
    report(replace(settings, check=True))


def test_the_page_holds_every_part_in_order(page: Path) -> None:
    html = page.read_text()
    chapters = ("problem", *FIGURES[:3], "why", *WHY, "training-chapter", "steps", *FIGURES[-2:], "claims", "samples")
    places = [html.index(f'<section id="{name}"') for name in (*chapters, "data")]
    assert places == sorted(places)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert "Not run." not in re.sub(r"The audit of the test files.*", "", html[: html.index('<section id="data"')])
    for verdict in DECISIONS:
        assert f"</span> {verdict}</span>" in html
    for words in ("A CPU, 2 cores, 8 GiB, no GPU", "12 minutes", "A note.", "Negative controls"):
        assert words in html
    assert html.count("reference solution") == 1  # where "gold solution" is defined: one word for one thing
    assert not re.findall(
        r"(?i)hand(?:s|ed|ing)?.over|pass(?:es|ed|ing)? on\b|gold completion", re.sub("hand_over", "", html)
    )


def test_the_first_screen_has_the_few_primary_claims_with_their_decisions(page: Path) -> None:
    html = page.read_text()
    begin = html[: html.index("<main>")]
    shown = re.findall(r'</span> (\w+)</span> <a href="#claim-(\w+)">(Statement \d)', begin)
    assert shown == [("supported", "H1", "Statement 0")]
    assert '<tr id="claim-H1">' in html
    assert "Held-out functions are learned one by one and never composed" in html.partition("<nav")[0]


def test_the_first_screen_says_why_a_primary_claim_is_not_testable(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = claims(1)
    known["claims"][0] |= {"decision_holm": "not testable", "reason": "RL solves nothing in seed1"}
    monkeypatch.setattr(Inputs, "json", lambda *_: known)
    (primary,) = claims_section(inputs)["primary"]
    assert (primary["badge"]["word"], primary["reason"]) == ("not testable", "RL solves nothing in seed1")


def test_the_training_of_every_arm_is_told_and_one_without_updates_marked(page: Path) -> None:
    html = page.read_text()
    study = re.sub(' data-title="[^"]*"', "", html[html.index('<section id="training-chapter">') :])
    warning = "rl-level1 in seed1: none of 20 updates had signal; its weights are unchanged"
    assert f"<strong>Warning:</strong> {warning}" in study
    assert "<tr><td>RL on level 2</td><td>20</td><td>0</td><td>160</td><td>100</td>" in study
    assert "rl-level2 in seed" not in study
    assert "apply the problem’s functions in order, each to the result of the one before it" in " ".join(html.split())


def test_claims_are_counted_by_origin_and_each_says_what_is_behind_its_decision(page: Path) -> None:
    html = page.read_text()
    start = html.index('<dl class="tally">')
    tally = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html[start : html.index("A claim is <em>")])
    counts = {title: re.findall(r'"count">(\d+) .*?</span> ([\w ]+)</span>', counts) for title, counts in tally}
    assert counts == {
        "2 claims of the paper": [("1", "supported"), ("1", "contradicted")],
        "2 variants of them": [("1", "undecided"), ("1", "not testable")],
        "1 claim of this study&#39;s own": [("1", "not run")],
    }
    own, controls = html.index("Claims of this study’s own</h3>"), html.index("Negative controls</h3>")
    assert own < html.index('id="claim-H4"') < controls
    rows = {name: html[html.index(f'id="claim-{name}"') :].partition("</tr>")[0] for name in ("H1", "H3", "H5")}
    assert '<div class="small">after Holm: supported (one-sided p 0.02)</div>' in rows["H1"]
    assert "by seed: +20 +20" in rows["H1"]
    assert "needs about 12 seeds" in rows["H3"]
    assert 'badge not-testable"><span aria-hidden="true">∅</span> not testable' in rows["H5"]
    assert '<div class="small">Not testable: rl-level2 hardly trained</div>' in rows["H5"]
    assert "after Holm" not in rows["H5"]


def test_one_seed_is_said_in_words_and_what_is_missing_by_its_command(bare_study: ReportSettings) -> None:
    made = bare_study
    html = (made.output / "index.html").read_text()
    assert "bash bash/claims.sh" in html
    assert "one seed (how much other seeds would differ is not known)" in html
    assert " · Not registered · 1 seed</span></p>" in html
    for command in ("section41_42/run_all", "section43/run_all", "section44/passk", "section45/failure_modes"):
        assert f"bash bash/{command}.sh" in html
    assert {path.name for path in (made.output / "figures").iterdir()} == {"headline.png", "accuracy.png"}
    missing = html[html.index('<details id="not-run"') :].partition("</summary>")[0]
    assert "Not on this page: Transfer to Countdown; " in missing  # in one line, folded
    assert missing.endswith("; One problem in the course of RL; Completions to read; The audit of the test files")
    assert not re.findall(r'<section id="(?:steps|samples)"|<a href="#samples"', html)  # no box without content
    assert '<section id="problem"' not in html  # without rollouts among the inputs
    assert "samples/validation_STEP.jsonl" in html  # of the slider along training
    with pytest.raises(UserError, match=r"no such folder; STUDY=nowhere bash bash/section41_42/run_all.sh makes it"):
        report(replace(made, study=made.study / "nowhere"))
    (made.study / "earlier/section41_42").mkdir(parents=True)
    (made.study / "earlier/section41_42/accuracy.json").touch()
    with pytest.raises(UserError, match=r"accuracy\.json is of an earlier version: git checkout dca9a2b5\^ reads it"):
        report(replace(made, study=made.study / "earlier"))
    with pytest.raises(UserError, match="nowhere: no such folder"):
        report(replace(made, data="nowhere"))


def test_what_is_not_run_is_made_by_a_script_that_there_is() -> None:
    for words in WORDS.values():
        for script in re.findall(r"bash/[\w{}]+/\w+\.sh", " ".join(words.values())):
            sections = PAPERS if "{section}" in script else [""]
            assert all((ROOT / script.format(section=section)).is_file() for section in sections), script


def test_other_pages_begin_with_their_question_their_first_claim_and_its_interval(injection: ReportSettings) -> None:
    """With the main figure before any problem; problems that are compared are of the hardest level."""
    html = (injection.output / "index.html").read_text()
    begin = html.partition("<nav")[0]
    assert QUESTIONS[INJECTION] in begin
    assert re.findall(r'<section id="(\w+)" class="first">', begin) == ["gains", "problem"]
    assert f"<h1>{escape(f'Statement 0 <b>{ATTACK}</b>')}: supported, +20.0 points [+10.0, +30.0].</h1>" in begin
    assert "Claimed: &gt; 0 points; 95\u00a0% interval over problems. Primary claims, corrected" in begin
    assert comparison(find_inputs(injection)) == HeadlineComparison("rl-bridge", "sft-bridge", "igsm", 4)
    assert len(html) < 3_000_000


def test_a_claim_of_fits_is_told_in_its_own_unit_and_one_without_figures_is_passed_over(
    injection: ReportSettings, tmp_path: Path
) -> None:
    known = claims(1)
    first, second, *_ = known["claims"]
    for row in first["comparisons"]:
        row |= {"difference": None, "low": None, "high": None}
    second |= {"text": "Slopes rise", "decision": "not testable", "reason": "RL gains nothing", "decision_holm": None}
    figures = {"difference": 0.559, "low": 0.404, "high": 0.714, "threshold": 0.0}
    second["comparisons"][0] |= {"metric": "scaling", **figures}
    path = write_json(tmp_path / "claims.json", known)
    assert first_claim(Inputs(injection, (), {"claims.json": path})) == {
        "sentence": "Slopes rise: not testable, +0.56 [+0.40, +0.71].",
        "lead": "Not testable: RL gains nothing. Claimed: > 0; 95\u00a0% interval over runs.",
    }
    second["comparisons"][0] |= {"metric": "accuracy", "rule": "ahead", "threshold": 0.133}
    ahead = first_claim(Inputs(injection, (), {"claims.json": write_json(tmp_path / "ahead.json", known)}))
    assert "Claimed: ahead; as good: within ± 13.3 points; 95" in ahead["lead"]
    assert first_claim(Inputs(injection, (), {})) == {}


def test_of_many_models_the_worked_problem_has_the_answers_of_the_two_that_are_compared(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_problems, "MOST_MODELS", len(MODELS) - 1)
    shown = worked_problem(inputs, HeadlineComparison("rl-level2", "stage1", "heldout", 3))
    assert ([row["model"] for row in shown["answers"]], shown["everybody"]) == (["stage1", "rl-level2"], False)


def test_of_many_models_charts_by_level_show_those_the_study_is_about(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table below has all; of more than five seeds no dot is drawn."""
    monkeypatch.setattr(page_figure, "MOST_LINES", len(MODELS) - 1)
    monkeypatch.setattr(figures, "MOST_DOTS", 1)
    what = comparison(inputs)
    assert what is not None
    shown = [headline(inputs, what), accuracy(inputs, "accuracy")]
    for figure in filter(None, shown):
        assert "Shown are 3 of 4 models; the table under “Right answers by level” has all of them." in figure.caption
        assert "dots" not in figure.caption
        rows = [row for table in figure.spec["datasets"].values() for row in table]
        assert {row["arm"] for row in rows} == {arm_styles(MODELS)[name].title for name in MODELS if name != "rft"}
        assert not any(row.get("dot") for row in rows)
    assert shown[1] is not None
    assert shown[1].details[0]["titles"] == ["group", "level", *(arm_styles(MODELS)[name].title for name in MODELS)]


def test_of_a_registered_study_problems_are_made_again_with_each_steps_probability(tmp_path: Path) -> None:
    """Nothing but the tables and the registration is kept; a problem file with another hash is not shown."""
    study, test_seed = tmp_path / "results" / "tiny", 2040
    words = [f"test_seed={test_seed}", "function_split=3", "files=[test_heldout]", f"output={tmp_path}/data"]
    (file,) = create_problem_set(["profile=smoke", "set=string", "seed=1", *words])
    section = of_seed(study, 1) / "section41_42"
    evaluate_models(section, {"string_task-test_heldout": file}, MODELS, 1)
    give_exact(section, 1)
    shutil.rmtree(section / "rollouts")
    registration = study / "registration" / "registration.yaml"
    registration.parent.mkdir()
    text = (ROOT / "compositionality/config/registrations/composition-5.yaml").read_text()
    text = text.replace("profile: tiny", "profile: smoke").replace("test_seed: 2071", f"test_seed: {test_seed}")
    registration.write_text(text)
    made = ReportSettings(study, study / "report")
    html = report(made).read_text()
    (level,) = {int(found) for found in re.findall(r"One problem of level (\d), and how probable", html)}
    shown = html[html.index('<section id="problem"') :].partition("</section>")[0]
    assert "of which only the verdict was kept" in " ".join(shown.split())
    assert "first of this level that RL on level 2 answers right and" in shown
    assert "never composed in training" in html.partition("<main>")[0]
    gold = re.findall(r"<pre>(.*?)</pre>", shown, re.DOTALL)[1].splitlines()
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(<td.*?)</tr>", shown, re.DOTALL)]
    assert [row[0] for row in rows] == ["answer", *gold[:level], "all steps"]
    by_model = [[float(cell) for cell in column] for column in zip(*(row[1:] for row in rows[1:]), strict=True)]
    for *steps, whole in by_model:
        assert math.prod(steps) == pytest.approx(whole, rel=0.1)
    explored = json.loads(unpacked(html, "explorer"))
    assert all(text["answers"] == [None] * len(MODELS) for text in explored["replicates"][0]["texts"].values())
    assert "of answers only verdicts were kept" in html
    assert explored["runs"] == []
    for step in (0, 20):
        write_validation(section / "samples/stage2-rl-level2" / f"validation_{step}.jsonl", step)
    shown = json.loads(unpacked(report(made).read_text(), "explorer"))["runs"]
    assert [(run["run"], [step["step"] for step in run["steps"]]) for run in shown] == [("rl-level2", [0, 20])] * 2
    registration.write_text(text.replace(f"test_seed: {test_seed}", "test_seed: 2050"))
    with pytest.raises(UserError, match=r"index.html: stale, \S+registration.yaml has changed"):
        check(made)
    assert '<section id="problem"' not in report(made).read_text()
    made_in = {"commit": commit_of(ROOT / "LICENSE")}
    frozen = Manifest(step="register_study", settings=made_in, inputs={}, files={}, code="")
    registration.with_name("manifest.json").write_text(frozen.model_dump_json())
    assert re.search(
        r"Registered in commit [0-9a-f]{8} on 20\d\d-\d\d-\d\d, before its test problems were made · 1 seed$",
        study_line(find_inputs(made)),
    )


def test_a_registered_study_begins_with_its_first_primary_claims_comparison(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its measure; where nothing is registered, or no figure is known yet, as any study."""
    known = claims(2) | {"registration": {"registration": "tiny"}}
    row = known["claims"][0]["comparisons"][0]
    row |= {"measure": "right_chain", "base": "rl-level1", "level": 2}
    monkeypatch.setattr(Inputs, "json", lambda *_: known)
    what, main = comparison(inputs), PageFigure("", "", "", "", {}, (), ())
    assert what == HeadlineComparison("rl-level2", "rl-level1", "heldout", 2, "right_chain")
    found = next(
        one
        for one in differences(inputs.evaluated, "right_chain")
        if (one["model"], one["base"], one["group"], one["level"]) == ("rl-level2", "rl-level1", "heldout", 2)
    )
    said = finding(inputs, what, main)
    assert said["sentence"].startswith("Right chains (held-out functions, level 2): RL on level 2 in ")
    assert f"; difference {100 * found['difference']:+.1f} points [".replace("-", "−") in said["sentence"]
    assert said["lead"].endswith("A right chain has every step right.")
    chart = headline(inputs, what)
    assert chart.title == "Right chains by level, held-out functions"
    assert [(row["model"], row["right_chain"]) for row in chart.rows if row["level"] == 2] == [
        (row["model"], row["right_chain"])
        for row in inputs.summary["right_chain"]
        if (row["group"], row["level"]) == ("heldout", 2)
    ]
    main_arm = HeadlineComparison("rl-level2", "stage1", "heldout", 3)
    row |= {"difference": None}
    assert comparison(inputs) == main_arm
    row |= {"difference": 0.1, "base": "base"}  # which was not evaluated
    assert comparison(inputs) == main_arm
    row |= {"base": "rl-level1"}
    del known["registration"]
    assert comparison(inputs) == main_arm


@pytest.mark.parametrize(
    ("effects", "changes", "shown"),
    [
        ((0.0, 0.5, 0.2), {}, "seed2"),
        ((0.3, 0.5, 0.2, 0.0), {}, "seed2"),  # of the two middle ones the lower
        ((0.3, 0.3), {}, "seed0"),
        ((0.0, 0.5, 0.2), {"splits": [[0.1], [0.3, 0.2]]}, "seed2"),
        ((0.0, 0.5, 0.2), {"values": [0.5, 0.2]}, "seed0"),  # a replicate has no value
        ((0.0, 0.5, 0.2), {"difference": None}, "seed0"),
    ],
)
def test_a_registered_study_shows_the_replicate_with_the_median_effect_first(
    effects: tuple[float, ...], changes: dict[str, Any], shown: str, tmp_path: Path
) -> None:
    known = registered_claims(*effects)
    known["claims"][0]["comparisons"][0] |= changes
    inputs = Inputs(
        ReportSettings(tmp_path, tmp_path), tuple(known["seeds"]), {"claims.json": tmp_path / "claims.json"}
    )
    inputs.files["claims.json"].write_text(json.dumps(known))
    assert inputs.shown == shown
    del known["registration"]
    inputs.files["claims.json"].write_text(json.dumps(known))
    assert inputs.shown == "seed0"


@pytest.mark.parametrize("kept", ["seed1", "seed0"])
def test_what_is_of_one_replicate_says_of_which(copied: ReportSettings, kept: str) -> None:
    """All is of the one shown first; completions are of the first where no others are there."""
    write_json(copied.study / "claims.json", registered_claims(0.4, 0.1), step="claims")
    if kept == "seed0":
        shutil.rmtree(copied.study / "seed1/section41_42/rollouts")
    inputs = find_inputs(copied)
    assert (inputs.shown, inputs.kept) == ("seed1", kept)
    what = comparison(inputs)
    assert what
    shown = worked_problem(inputs, what)
    assert shown["of"] == "seed1, the replicate with the median effect on the first primary claim"
    assert len(shown["answers"]) == (len(MODELS) if kept == "seed1" else 0)
    number = inputs.evaluated.rows.query("replicate == 'seed1' and arm == 'rl-level2' and right == 1")["problem"]
    assert shown["number"] in [*number]
    assert all(f", {kept.replace('seed', 'seed ')}, says" in row["response"] for row in samples(inputs))
    dots = gold(inputs, "gold_probability")
    assert dots
    explored = explorer(inputs, [dots])
    assert explored["first"] == "seed1"
    texts = {one["name"]: [*one["texts"].values()] for one in explored["replicates"]}
    for name, known in texts.items():
        assert all(all((answer is None) == (name != kept) for answer in one["answers"]) for one in known)
    assert texts[kept]
    assert {file.split("/")[1] for file in inputs.starting("validation/")} == {kept}
    html = " ".join(report(copied).read_text().split())
    words = {
        "seed1": shown["of"],
        "seed0": "seed0 (effect on the first primary claim: +40.0 points; of seed1, which has the median effect (+10.0 "
        "points), none were kept)",
    }
    for sentence_of in (f"From {words[kept]}.", f"Runs: {words[kept]}.", f"The menu begins with {shown['of']}."):
        assert sentence_of in html
    for name in ("gold_probability", "gold_roles"):
        assert f"{shown['of']}" in html[html.index(f'<section id="{name}"') :].partition("</section>")[0]


def test_the_size_of_the_models_is_that_of_the_base_or_of_the_registered_recipe(
    settings: ReportSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file({"a": np.zeros((3, 4), "float16"), "b": np.zeros(5)}, tmp_path / "model.safetensors")
    assert model_size(Inputs(settings, ("seed0",), {"runs/seed0/base/manifest.json": tmp_path / "manifest.json"})) == 17
    monkeypatch.setattr(preflight, "forecast_of", lambda _: SimpleNamespace(shape=SimpleNamespace(parameters=18)))
    path = ROOT / "compositionality/config/registrations/composition-5.yaml"
    registered = Inputs(settings, ("seed70-split131",), {"registration/registration.yaml": path})
    for now, size in ((read_registration(path).recipe_sha256, 18), ("changed since", 0)):
        monkeypatch.setattr(registration, "hashes_of", lambda _, now=now: {"recipe_sha256": now})
        assert model_size(registered) == size


def test_p15_every_file_says_what_it_was_made_from(settings: ReportSettings, inputs: Inputs, page: Path) -> None:
    manifest = verify(settings.output)
    assert manifest.inputs == inputs.hashes
    assert set(manifest.facts["made_from"]) == set(manifest.files)
    html = page.read_text()
    assert inputs.stamp([*inputs.files]) in html
    for name in FIGURES:
        sources = manifest.facts["made_from"][f"figures/{name}.png"]
        assert sources
        assert set(sources) <= set(manifest.inputs)
        mark = inputs.stamp(sources)
        assert code_version() in mark
        assert mark in html
        assert mark.encode("latin-1") in (settings.output / f"figures/{name}.png").read_bytes()


def test_p07_the_same_inputs_give_the_same_bytes(settings: ReportSettings, copied: ReportSettings) -> None:
    shutil.rmtree(copied.output)
    report(copied)
    assert verify(copied.output).files == verify(settings.output).files
    before = (copied.output / "index.html").stat().st_mtime_ns
    report(copied)
    assert (copied.output / "index.html").stat().st_mtime_ns == before


def one_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def test_p15_one_byte_of_any_input_makes_the_report_stale(copied: ReportSettings) -> None:
    """Of every kind of input, in the last place that has it."""
    check(copied)
    files = find_inputs(copied).files
    kinds = {(name.partition("/")[0], path.name if path.is_file() else "folder"): path for name, path in files.items()}
    assert len(kinds) > 15
    for place in kinds.values():
        path = max(place.iterdir()) if place.is_dir() else place
        content = path.read_bytes()
        one_byte(path)
        with pytest.raises(UserError, match=r"stale|altered"):
            check(copied)
        path.write_bytes(content)
    check(copied)


def test_p15_check_names_the_file_in_one_line(copied: ReportSettings, capsys: pytest.CaptureFixture[str]) -> None:
    """As typed, with exit code 2."""
    words = [f"{entry.name}={getattr(copied, entry.name)}" for entry in fields(copied)[:5]]
    for change, file, told in (
        (one_byte, "section41_42/times.tsv", r"index.html: stale, \S+times.tsv has changed"),
        (one_byte, "seed0/section41_42/results.parquet", r"section41_42/results.parquet: altered"),
        (one_byte, "seed0/section41_42/rollouts/rft/*/shard*", r"seed0/section41_42/rollouts/\S+: altered"),
        (Path.unlink, "claims.json", r"index.html: stale, claims.json is gone"),
        (one_byte, "report/figures/passk.png", r"figures/passk.png: altered"),
        (Path.unlink, "report/tables/passk.csv", r"tables/passk.csv: missing"),
        (Path.unlink, "report/manifest.json", r"report: "),
    ):
        path = next(copied.study.glob(file))
        content = path.read_bytes()
        change(path)
        assert typed("report", "", {"NOWHERE": path}, *words, "--check") == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert re.search(told, errors), errors
        path.write_bytes(content)
    shutil.rmtree(copied.output)
    with pytest.raises(UserError, match="report: does not exist"):
        check(copied)


def test_a_report_follows_its_inputs_and_has_figures_as_pdf_for_a_paper(
    bare_study: ReportSettings, tmp_path: Path
) -> None:
    made = copied_to(tmp_path / "copy", bare_study.study.parents[1], bare_study)
    times = made.study / "section41_42" / "times.tsv"
    times.write_text(times.read_text().replace("700", "60"))
    changed = replace(made, figures="pdf")
    html = report(changed).read_text()
    assert "1 minute if one step" in html
    check(changed)
    assert {path.name for path in (made.output / "figures").iterdir()} == {"headline.pdf", "accuracy.pdf"}
    assert "figures/headline.pdf" in html


def test_p16_what_a_model_writes_is_text(page: Path) -> None:
    html = page.read_text()
    assert ATTACK not in html
    assert 'onerror="' not in html.replace("onerror=\\&#34;", "")
    assert html.count("<script") == html.count("</script>") == 7
    assert "<img" not in html
    assert "49 &amp;" not in html  # no template in a template
    data = re.search(r'id="sample-data">(.*?)</script>', html, re.DOTALL)
    assert data is not None
    assert ATTACK in json.loads(data[1])[0]["response"]


def test_samples_are_stratified_and_bounded(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    found = samples(inputs)
    assert len(found) <= AT_MOST
    cells = {(row["model"], row["group"], row["level"], row["reason"]) for row in found}
    assert len(cells) == len(MODELS) * 2 * 3 * 4
    assert [row["model"] for row in found] == sorted((row["model"] for row in found), key=MODELS.index)
    assert {row["gold"] for row in found} == {'{"output": "abc"}'}
    assert cut("a" * LONGEST) == "a" * LONGEST
    assert "characters left out" in cut("a" * 10 * LONGEST)
    assert len(cut("a" * 10 * LONGEST)) < LONGEST + 100

    def with_an_empty_one(folder: Path) -> Iterator[Any]:
        """As the last ones of a large file, whose levels and reasons all have enough by then."""
        for shard in read_rollouts(folder):
            yield from (shard, shard.slice(0, 0))

    monkeypatch.setattr(page_problems, "read_rollouts", with_an_empty_one)
    assert samples(inputs) == found


def test_p18_a_file_without_what_the_page_needs_is_named(settings: ReportSettings, tmp_path: Path) -> None:
    claims = json.loads((settings.study / "claims.json").read_text())
    del claims["claims"][2]["origin"]
    for name, content, told in (
        ("claims.json", claims, r"claims\[2\]: has no key 'origin'.*; run the step that makes it again$"),
        ("claims.json", {**claims, "claims": "x"}, "claims: has the wrong type str"),
        ("machine.json", {"cpu": "x"}, "has no key 'cores'"),
        ("recipe.json", {"settings": []}, "settings: has the wrong type list"),
        ("recipe.json", [], "damaged .a JSON list"),
    ):
        path = tmp_path / name
        path.write_text(json.dumps(content))
        with pytest.raises(UserError, match=rf"{name}: {told}"):
            Inputs(settings, (), {name: path}).json(name)


def test_every_figure_has_its_rows_as_csv(settings: ReportSettings) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        with (settings.output / "tables" / f"{name}.csv").open() as stream:
            return list(csv.DictReader(stream))

    assert {path.stem for path in (settings.output / "tables").iterdir()} == {
        *FIGURES, "lift_by_decile", "training_runs", "settings", "stages",
    }  # fmt: skip
    assert {(row["model"], row["k"]) for row in rows("passk")} >= {("stage1", "1"), ("rl-level2", "16")}
    shares = [row for row in rows("accuracy") if not row["base"]]
    assert Counter(row["measure"] for row in shares) == dict.fromkeys((CORRECT, *CHAIN), len(MODELS) * 6)
    assert {row["arm"] for row in rows("training")} == {"rl-level1", "rl-level2"}
    assert [(row["seed"], row["arm"], row["groups_with_signal"]) for row in rows("training_runs")] == [
        (seed, arm, signal) for seed in ("seed0", "seed1") for arm, signal in (("rl-level1", "0"), ("rl-level2", "100"))
    ]
    budget = [row for row in rows("budget") if row["seed"] == "seed0"]
    assert [int(row["completions"]) for row in budget if row["arm"] == "rft"] == [40, 80]
    assert [int(row["completions"]) for row in budget if row["arm"] == "rl-level2"][:4] == [32, 64, 96, 128]
    assert rows("stages") == [{"seed": "seed0", "step": "stage1", "seconds": "700"}]
    assert {"run": "sampling", "key": "n_samples", "value": "1"} in rows("settings")


def unpacked(html: str, name: str) -> str:
    packed = re.search(rf'id="{name}">(.*?)</script>', html)
    assert packed is not None
    return gzip.decompress(base64.b64decode(packed[1])).decode()


def test_a_figure_in_the_page_is_that_of_its_file(inputs: Inputs, shown: dict[str, PageFigure], page: Path) -> None:
    specs = json.loads(unpacked(page.read_text(), "specs"))
    assert [*specs] == [*FIGURES]
    for figure in shown.values():
        drawn = json.loads(json.dumps(figure.spec))
        made = (page.parent / "figures" / f"{figure.name}.png").read_bytes()
        assert made == rendered(drawn, "png", inputs.stamp(figure.inputs))
        if figure.name == DOTS:  # the page draws the replicate that is chosen, from what the explorer holds
            drawn["datasets"] = {name: [] for name in drawn["datasets"]}
        assert specs[figure.name] == drawn


def test_only_the_script_of_the_page_and_the_packed_library_may_run(page: Path) -> None:
    html = page.read_text()
    scripts = (unpacked(html, "vega"), html.rpartition("<script>")[2].partition("</script>")[0])
    allowed = re.search(r"script-src ([^;]+);", html)
    assert allowed is not None
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts}
    assert set(allowed[1].split()) == hashes
    assert len(html) < 1_500_000


def test_a_page_that_is_copied_alone_holds_its_tables_and_links_no_file(page: Path) -> None:
    html = page.read_text()
    assert not re.findall(r'(?:href|src)="(?!#|data:)[^"]*"', html)
    tables = {file.stem: file.read_text() for file in (page.parent / "tables").iterdir()}
    assert json.loads(unpacked(html, "tables")) == tables
    assert {f"{name}.csv" for name in tables} == set(re.findall(r'data-save="([^"]+\.csv)"', html))


def test_the_first_sentence_is_the_studys_main_arm_against_what_it_starts_from(inputs: Inputs, page: Path) -> None:
    shares = {
        row["model"]: f"{100 * row['accuracy']:.1f}\u00a0%"
        for row in inputs.accuracy
        if (row["group"], row["level"]) == ("heldout", 3)
    }
    pair = ("rl-level2", "stage1", "heldout", 3)
    found = differences(inputs.evaluated, CORRECT)
    row = next(one for one in found if (one["model"], one["base"], one["group"], one["level"]) == pair)
    low, value, high = (f"{100 * row[key]:+.1f}".replace("-", "−") for key in ("low", "difference", "high"))
    sentence = re.search(r"<h1>(.*?)</h1>", page.read_text())
    assert sentence is not None
    assert sentence[1] == (
        f"Right answers (held-out functions, level 3): RL on level 2 in {shares['rl-level2']}, "
        f"Stage 1 (single functions) in {shares['stage1']}; difference {value} points [{low}, {high}]."
    )
    lines = page.with_name("finding.txt").read_text().splitlines()
    assert lines[:2] == [sentence[1].replace("\u00a0", " "), "95 % interval over seeds and problems."]
    assert [line.partition(":")[0] for line in lines[2:]] == [
        f"Right answers (held-out functions, level {level})" for level in (2, 3)
    ]
    assert all(line.count(":") <= 1 for line in lines)
    assert f"RL on level 2 in {shares['rl-level2']}".replace("\u00a0", " ") in lines[3]


def test_the_worked_problem_is_the_first_that_tells_them_apart_with_everybodys_answer(inputs: Inputs) -> None:
    what = comparison(inputs)
    assert what == HeadlineComparison("rl-level2", "stage1", "heldout", 3)
    shown = worked_problem(inputs, what)
    place = 2 * PER_LEVEL + solved("stage1", 3, 0)  # of level 3, behind those that both solve
    assert (shown["number"], shown["chosen"]) == (place, True)
    assert [(row["model"], row["reason"] == "correct") for row in shown["answers"]] == [
        (model, solved(model, 3, 0) > solved("stage1", 3, 0)) for model in MODELS
    ]
    assert all(row["response"].endswith(f"{ATTACK} {place}") for row in shown["answers"])


def test_functions_of_a_worked_problem_are_explained_in_the_order_in_which_they_apply() -> None:
    assert meanings("func_17func_5func_17:ab") == [
        ("func_17", "Write the text backwards"),
        ("func_5", "Put a prefix before the text (bf)"),
    ]
    assert not meanings("What does func_17(func_5(x)) return for x: ab?")


def test_pass_at_k_and_failure_modes_are_means_over_all_seeds(inputs: Inputs, shown: dict[str, PageFigure]) -> None:
    counts = {
        name: [read(inputs.files[f"{name}/seed{seed}/results.parquet"]) for seed in range(2)]
        for name in ("passk", "failures")
    }

    def of_seeds(name: str, row: Any) -> list[pd.DataFrame]:
        """The table of each seed, of the row's model, group and level."""
        keys = {"arm": row["model"], "group": row["group"], "level": row["level"]}
        return [table[(table[list(keys)] == list(keys.values())).all(axis=1)] for table in counts[name]]

    curves = shown["passk"].rows
    for row in curves[(curves["base"] == "") & (curves["k"] == 1)].to_dict("records"):
        assert (row["n_seeds"], row["interval"]) == (2, "seeds and problems")
        each = [(table["right"] / table["judged"]).mean() for table in of_seeds("passk", row)]
        assert [*row["values"], row["value"]] == pytest.approx([*each, sum(each) / 2])
    for row in shown["failure_modes"].rows:
        each = [table[f"failure_{row['class']}"].sum() / table["n"].sum() for table in of_seeds("failures", row)]
        assert [*row["values"], row["share"]] == pytest.approx([*each, sum(each) / 2])
    assert [row[1] for row in shown["passk"].details[0]["rows"]] == [1, 2, 3]


def test_a_study_of_another_task_with_other_groups_levels_and_arms(tmp_path: Path) -> None:
    """Nothing on the page is the string task's: groups, levels, arms and audit come from the tables."""
    study = tmp_path / "results" / "digits"
    shares = dict.fromkeys(product(("warm-start", "rl-dense"), ("short_lists", "long_lists"), (4, 5, 6)), 0.5)
    for seed in range(2):
        evaluated(study / f"seed{seed}" / "section41_42", shares, seed, source="digits-{group}-level{level}")
    audit = {"sorted.parquet": [{"level": 4, "rows": 12, "wrong_gold": 0, "repeated_digits": 0.25, "longest": 7.5}]}
    write_json(study / "data_audit.json", audit, step="audit_data")
    run = tmp_path / "checkpoints" / "digits" / "seed0" / "stage2-rl-dense"
    run.mkdir(parents=True)
    rows = [{"step": step, "val-core/digits-long_lists-level4/acc/mean@1": step / 10} for step in range(3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = ReportSettings(
        study, study / "report", checkpoints=str(tmp_path / "checkpoints" / "digits"),
        arms={"rl-dense": {"title": "RL, dense reward", "colour": "#123456"}},
    )  # fmt: skip
    html = report(made).read_text()
    for words in (
        ">short lists<", ">long lists<", "RL, dense reward", ">warm-start<", "short lists: levels 4 to 6",
        "repeated digits", "25.0%", "7.5", "dots: single seeds",
    ):  # fmt: skip
        assert words in html
    assert "#123456" in unpacked(html, "specs")
    of_functions = (  # not run
        "Right answers by function and by pair of functions"
        "|Which functions hand their result on, before and after training"
    )
    own = re.sub(rf"<script.*?</script>|{of_functions}", "", html, flags=re.DOTALL) + unpacked(html, "specs")
    for words in ("function", "Llama", "Paper (Fig", "arXiv"):
        assert words not in own
    report(replace(made, check=True))
    with pytest.raises(UserError, match=r"index.html: stale"):
        report(replace(made, check=True, arms={}))


def test_p21_a_file_put_into_the_report_is_not_deleted_when_the_page_is_made_anew(
    bare_study: ReportSettings, tmp_path: Path
) -> None:
    made = copied_to(tmp_path / "copy", bare_study.study.parents[1], bare_study)
    notes = made.output / "notes.txt"
    notes.write_text("mine")
    arms = {"rl-level2": {"title": "Another title"}}
    with pytest.raises(UserError, match=r"notes\.txt: not a part of this result"):
        report(replace(made, arms=arms))
    assert notes.read_text() == "mine"
    report(replace(made, arms=arms, force=True))


def test_as_good_is_said_in_place_of_contradicted_and_undecided_stays() -> None:
    """Of the interval over seeds and of that over problems alike, each within the margin or not."""
    row = {"decision": "contradicted", "rule": "ahead", "threshold": 0.1, "low": -0.08, "high": -0.02}
    claim = {"decision": "contradicted", "comparisons": [row, row]}
    assert [said(row), said(claim), said(claim, "undecided")] == ["as good", "as good", "undecided"]
    assert said({**claim, "comparisons": [row, {**row, "low": -0.3}]}) == "contradicted"
    compared = {"model": "rl-level2", "base": "gold-sft", "group": "heldout", "level": 3, "comparison": ""}
    told = {"claim": "learner", "primary": True, "decision_holm": "contradicted", "p_holm": 0.02}
    for low, word in ((-0.09, "as good"), (-0.11, "contradicted")):
        rows = [{**row, **compared, "problems_low": low, "problems_high": -0.01, "difference": None}]
        claim |= told | {"decision_these_seeds": "contradicted", "comparisons": rows}
        (shown,) = claim_rows([claim], 1.0, arm_styles(["rl-level2", "gold-sft"], {}))
        assert (shown["holm"], shown["badge_these_seeds"]["word"]) == ("as good (two-sided p 0.02)", word)


@pytest.mark.parametrize(("changed", "expected"), [
    ({}, "… RL on level 2 gives more right answers than Stage 1."),
    ({"base": "base", "measure": "ignores_composition"}, "… RL on level 2 gives more answers that ignore the "
     "composition than the base model."),
    ({"model": "rl-bridge", "base": "sft-bridge", "threshold": -0.05, "group": "igsm"}, "On igsm at level 3, "
     "“BRIDGE: SFT, RL” is less than 5 points behind “BRIDGE: SFT” in right answers."),
    ({"rule": "≤", "threshold": -0.1}, "… RL on level 2 gives at least 10 points fewer right answers than Stage 1."),
    ({"rule": "ahead", "threshold": 0.133, "measure": "right_chain", "base": "gold-sft"}, "… RL on level 2 gives "
     "more right chains than SFT on gold solutions (as good: within ±13.3 points)."),
    ({"measure": "right_chain", "rule": "≤", "threshold": 0.05, "level": DEEPEST}, "On held-out functions at the "
     "deepest level, RL on level 2 gives at most 5 points more right chains than Stage 1."),
    ({"measure": "ignores_composition", "threshold": 0.5, "base": None, "level": ALL_LEVELS}, "On held-out "
     "functions, over 50 % of the completions of RL on level 2 are answers that ignore the composition."),
    ({"measure": "beyond@1e-6", "threshold": 0.5}, "… of the problems to whose gold solution RL on level 2 gives "
     "over one chance in four, over 50 % are new: Stage 1 gave it less than one chance in a million."),
    ({"measure": "new@1e-6", "threshold": 0.1}, "… over 10 % of all problems are new: RL on level 2 gives their "
     "gold solution over one chance in four, and Stage 1 gave it less than one chance in a million."),
    ({"times": 2}, "… RL on level 2 gives more than 2 times as many right answers as Stage 1."),
    ({"times": 0.5, "rule": "≤", "threshold": 0.05}, "… RL on level 2 gives at most 0.5 times as many right answers "
     "as Stage 1, plus 5 points."),
    ({"times": 2, "rule": "within ±", "threshold": 0.05}, "… RL on level 2 gives 2 times as many right answers as "
     "Stage 1, within ±5 points."),
    ({"measure": "pass@2", "base_measure": "pass@64"}, "… the pass@2 of RL on level 2 is higher than the pass@64 of "
     "Stage 1."),
    ({"measure": "pass@2", "base_measure": "pass@64", "times": 2}, "… the pass@2 of RL on level 2 is more than 2 "
     "times the pass@64 of Stage 1."),
    ({"measure": "entropy", "threshold": 0.05}, "… the mean entropy per token of RL on level 2 is over 0.05 higher "
     "than that of Stage 1."),
    ({"measure": "mixed", "base": None, "rule": "≤", "threshold": 0.05}, "… RL on level 2 has a share of problems "
     "with both right and wrong answers of at most 5 %."),
    ({"measure": "pass@N − pass@1", "rule": "within ±", "threshold": 0.05}, "… the gain from pass@1 to pass@N of RL "
     "on level 2 is as high as that of Stage 1, within ±5 points."),
    ({"measure": "gold_pass@8", "base": None, "threshold": 0.5}, "… RL on level 2 has an exact pass@8 of the gold "
     "solution of over 50 %."),
    ({"measure": "support_lost", "rule": "≤", "threshold": 0.05}, "… Stage 1 solves, and RL on level 2 does not "
     "solve, at most 5 % of the problems."),
    ({"comparison": "heldout L3: rl-level2 − stage1, over rl-level1 − base, > 5", "threshold": 0.05}, "… the gain "
     "in right answers from Stage 1 to RL on level 2 is over 5 points larger than that from the base model to "
     "RL on level 1."),
    *(
        (
            {"comparison": "…, over rl-level1 − base, …", "rule": rule, "threshold": -0.05},
            "… the gain in right answers from Stage 1 to RL "
            f"on level 2 is {bound} 5 points smaller than that from the base model to RL on level 1.",
        )
        for rule, bound in ((">", "less than"), ("≤", "at least"))
    ),
    ({"metric": "scaling"}, "as claims write it"),
])  # fmt: skip
def test_a_comparison_of_the_forest_plot_is_a_sentence_that_stands_alone(changed: Any, expected: str) -> None:
    row = {"comparison": "as claims write it", "group": "heldout", "level": 3, "model": "rl-level2", "base": "stage1"}
    row |= {"rule": ">", "threshold": 0.0, **changed}
    styles = arm_styles(["base", "stage1", "rl-level1", "rl-level2", "gold-sft", "sft-bridge", "rl-bridge"])
    told = expected.replace("…", "On held-out functions at level 3,").replace("Stage 1", "Stage 1 (single functions)")
    assert sentence(row, styles) == told


def test_every_measure_of_claims_is_told_in_words() -> None:
    """Those that compare problems of two models have sentences of their own."""
    names = {name for known in CLAIMED.values() for name in known} - {"…"}
    for name in names:
        plain = re.sub(r"pass@\w+", "", noun_of(name))
        assert is_paired(name) or (not re.search("[_@−]", plain) and (noun_of(name) != name or not plain)), name


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            ({}, {"base": "base"}),
            "On held-out functions at level 3, RL on level 2 gives more right answers than both Stage 1 (single "
            "functions) and the base model.",
        ),
        *(
            (
                ({"level": 2}, {"level": level}),
                f"On held-out functions at each of levels 2 and {word}, RL on level 2 gives more right answers than "
                "Stage 1 (single functions).",
            )
            for level, word in ((3, "3"), (DEEPEST, "the deepest level"))
        ),
        (
            ({"measure": "support_gained"}, {"measure": "support_gained", "base": "base"}),
            "On held-out functions at level 3, RL on level 2 solves, and Stage 1 (single functions) does not solve, "
            "over 0 % of the problems; so too with the base model in place of Stage 1 (single functions).",
        ),
        (({"level": 2}, {"base": "base"}), "in its author's words"),
        (({}, {}, {"level": 2}, {"base": "base"}), "in its author's words"),
        (({}, {"measure": "right_chain"}), "in its author's words"),
    ],
)
def test_a_claim_is_one_sentence_where_its_comparisons_differ_in_base_or_level_alone(
    changes: tuple[dict[str, Any], ...], expected: str
) -> None:
    row = {"comparison": "", "group": "heldout", "level": 3, "model": "rl-level2", "base": "stage1", "rule": ">"}
    rows = [{**row, "threshold": 0.0, **change} for change in changes]
    claim = {"text": "in its author's words", "comparisons": rows}
    assert claim_sentence(claim, arm_styles(["base", "stage1", "rl-level2"])) == expected


def test_a_share_of_problems_has_no_sign_and_a_difference_has_one() -> None:
    row = {"group": "heldout", "level": 3, "model": "rl-level2", "base": "stage1", "rule": ">", "threshold": 0.5}
    row |= {"difference": 0.8, "low": 0.7, "high": 0.9, "values": [0.7, 0.9], "decision": "supported", "comparison": ""}
    for measure, value, by_seed in (("beyond@1e-6", "80.0\u00a0%", "70 90"), ("right_chain", "+80.0", "+70 +90")):
        shown = comparison_row({**row, "measure": measure}, 1, arm_styles(MODELS))
        assert (shown["points"]["value"], shown["by_seed"]) == (value, by_seed)


def test_figures_of_a_claim_say_against_which_model_where_there_are_two() -> None:
    row = {"group": "heldout", "level": 3, "model": "rl-level2", "base": "stage1", "rule": ">", "threshold": 0.1}
    row |= {"difference": 0.5, "low": 0.4, "high": 0.6, "values": [0.5], "decision": "supported", "comparison": ""}
    rows = [{**row, "measure": "new@1e-6", "base": base} for base in ("base", "stage1")]
    styles = arm_styles(["base", "stage1", "rl-level2"])
    shown = "50.0\u00a0% [40.0, 60.0]"
    two = [f"{shown} against {name}" for name in ("the base model", "Stage 1 (single functions)")]
    assert figures_of({"comparisons": rows}, 1, styles) == two
    assert figures_of({"comparisons": [rows[0], {**rows[1], "difference": None}]}, 1, styles) == two[:1]
    assert figures_of({"comparisons": rows[:1]}, 1, styles) == [shown]
    difference = {**row, "measure": "right_chain"}
    assert figures_of({"comparisons": [difference]}, 1, styles) == ["+50.0 points [+40.0, +60.0]"]


def test_a_study_that_still_runs_says_what_the_explorer_cannot_show_yet(tmp_path: Path) -> None:
    made = make_study(tmp_path, parts=("runs", "exact"))
    Path(made.checkpoints, "seed1").mkdir()
    inputs = find_inputs(made)
    dots = gold(inputs, "gold_probability")
    assert dots is not None
    said = explorer(inputs, [dots])["missing"]
    assert [line.partition(" are not here")[0] for line in said] == [
        "Not evaluated yet: seed1.",
        "The texts of problems",
    ]
    steps = validation(inputs)
    assert [[step["step"] for step in problem["steps"]] for problem in steps] == [[0, 5, 10, 15, 20]] * 4
    others = make_injection(tmp_path / "other", n_seeds=1, decided=False)
    html = report(others).read_text()
    assert "<h1>Right answers (igsm, level 4): BRIDGE: SFT, RL in" in html
    for command in ("claims", "behavior_injection/influence", "behavior_injection/passk"):
        assert f"bash bash/{command}.sh" in html
    assert {(problem["run"], problem["of"]) for problem in steps} == {("rl-level1", 20), ("rl-level2", 20)}
    (Path(made.checkpoints) / "seed0/stage2-rl-level1/samples/validation_20.jsonl").write_text('{"problem": 1}')
    with pytest.raises(UserError, match=r"validation_20\.jsonl: has no key 'data_source'"):
        validation(find_inputs(made))


def test_validations_of_verl_are_read_as_those_of_the_single_file_engine(
    trained_study: ReportSettings, tmp_path: Path
) -> None:
    """Rows as verl writes them: the data source comes from the problem files, of each the first three problems."""
    made = copied_to(tmp_path / "copy", trained_study.study.parents[1], trained_study)
    before = [problem for problem in validation(find_inputs(made)) if problem["run"] == "rl-level2"]
    run = Path(made.checkpoints) / "seed0" / "stage2-rl-level2"
    (run / "validation").mkdir()
    for file in (run / "samples").glob("validation_*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        rows = [*rows, rows[0], *({**rows[1], "prompt": f"more {number}"} for number in range(2))]
        lines = [
            {"input": row["prompt"], "output": row["completion"], "gts": row["ground_truth"], "step": 5,
             "score": 0.1 + row["right"], "reward": 0.1 + row["right"], "acc": float(row["right"]), "wrong": 0.0}
            for row in rows
        ]  # fmt: skip
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (run / "validation" / f"{file.stem.removeprefix('validation_')}.jsonl").write_text(text)
        file.unlink()
    after = [problem for problem in validation(find_inputs(made)) if problem["run"] == "rl-level2"]
    assert [problem["problem"] for problem in after] == [0, 1, 3]
    assert {problem["source"] for problem in after} <= {
        f"{title}, level {level}" for title, level in product(("trained functions", "held-out functions"), LEVELS)
    }
    for old, new in zip(before, after, strict=False):
        assert {**old, "source": ""} == {**new, "source": ""}
    assert [step["right"] for step in after[0]["steps"]] == [False, False, True, True, True]
    (run / "validation" / "20.jsonl").write_text('{"input": "1"}')
    with pytest.raises(UserError, match=r"20\.jsonl: has no key 'output'"):
        validation(find_inputs(made))


def test_a_study_of_which_nothing_is_evaluated_yet_shows_its_training_and_says_what_is_not_there(
    trained_study: ReportSettings, tmp_path: Path
) -> None:
    made = copied_to(tmp_path / "copy", trained_study.study.parents[1], trained_study)
    shutil.rmtree(made.study)
    with pytest.raises(UserError, match=r"no such folder; STUDY=\w+ bash bash/section41_42/run_all.sh makes it"):
        find_inputs(replace(made, checkpoints=""))
    html = report(made).read_text()
    assert "No model has been evaluated yet" in html
    assert re.findall(r'data-figure="(\w+)"', html) == ["training", "budget"]
    assert 'id="step-shown"' in html
    missing = html.partition('id="not-run"')[2]
    assert "pass@k by level" in missing
    assert "bash bash/section44/passk.sh" in missing
    report(replace(made, check=True))


@pytest.mark.parametrize(("second", "told"), [(("stage1", "rl-level1"), "RL on level 2"), (("rft",), "Stage 1")])
def test_models_that_only_some_seeds_have_are_named_as_left_out(
    tmp_path: Path, second: Sequence[str], told: str
) -> None:
    """The page compared other models, and said nothing of these; without a model of all seeds "none evaluated"."""
    for seed, arms in enumerate((("stage1", "rl-level1", "rl-level2"), second)):
        shares = {(arm, "heldout", level): 0.2 * (3 - level) for arm in arms for level in (1, 2, 3)}
        evaluated(tmp_path / f"study/seed{seed}/section41_42", shares, seed)
    html = report(ReportSettings(tmp_path / "study", tmp_path / "report")).read_text()
    assert f"left out, as not every seed has them: {told}" in html
    assert ("No model has been evaluated in every seed yet" in html) == (len(second) == 1)
    assert "none evaluated" not in html
    if len(second) > 1:
        assert told in (tmp_path / "report" / "finding.txt").read_text()
