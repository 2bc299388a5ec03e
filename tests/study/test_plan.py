"""The plan of a study: which steps, in which order, with which settings; what is wrong with it is one line."""

import json
import re
import subprocess
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from plans import asked, by_key

from compositionality.config.profile import profile_names
from compositionality.config.verbs import MADE_BY, RESULTS
from compositionality.data.artefact import OUTDATED, Recipe, is_to_be_checked, new_artefact, remove
from compositionality.errors import UserError
from compositionality.study import model as models
from compositionality.study.model import ROOTS, Replicate, Request, load_study, study_names
from compositionality.study.plan import plan, sort_steps
from compositionality.study.run import (
    RunStudySettings,
    check_files,
    check_lasting_problems,
    check_named,
    check_pairs,
    dry_run,
    run_study,
    shown,
)
from compositionality.study.steps import IS_STEP_WORD, Step
from compositionality.tasks.string.functions import side
from compositionality.train.run_folder import flatten

GOLDEN = Path(__file__).parents[1] / "golden" / "steps.json"
OF_THE_MACHINE = re.compile(r"(^|\.)(processes|workers|dry_run)$")
ENTROPY = "algorithm.entropy_like algorithm.entropy_coef"
PROFILES = ["tiny", "tiny/verl", "smoke", "smoke/verl", "small", "single", "single/verl", "instruct", "paper"]


CASES = [
    (study, profile)
    for study in study_names()
    for profile in PROFILES
    if study != "scaling_law" or profile.partition("/")[0] in ("tiny", "smoke", "paper")
    if study not in ("tuning", "ablation", "dial") or profile == "tiny"
]


def digest(step: Step) -> str:
    """Of all settings of a step, but for those of the machine."""
    parts = step.settings if isinstance(step.settings, dict) else {"": step.settings}
    settings = {
        f"{name}:{key}": str(value)
        for name, part in parts.items()
        for key, value in (flatten(asdict(part)) if part else {}).items()
        if not OF_THE_MACHINE.search(key)
    }
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def digests(study: str, profile: str) -> dict[str, str]:
    steps = plan(asked(study, profile, report=True))
    check_files(steps)
    check_lasting_problems(steps)
    check_pairs(steps)
    return {step.key: digest(step) for step in steps if step.entry_point}


@pytest.mark.parametrize(
    ("study", "profile"),
    [pytest.param(*case, marks=[] if case[1] in ("tiny", "paper") else pytest.mark.slow) for case in CASES],
)
def test_every_step_has_the_settings_that_it_had(study: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python tests/study/test_plan.py`` writes the digests anew, where settings are changed on purpose."""
    monkeypatch.delenv("N_GPUS", raising=False)
    expected = json.loads(GOLDEN.read_text())[f"{study} {profile}"]
    found = digests(study, profile)
    changed = [key for key in expected.keys() | found if expected.get(key) != found.get(key)]
    assert not changed, changed


def test_every_profile_is_in_the_digests() -> None:
    """But for quick, which is tiny in all studies but one."""
    assert {name.partition("/")[0] for name in PROFILES} | {"quick"} == {*profile_names()}


@pytest.mark.parametrize("folders", [{}, {"DATA_DIR": "/x//d/", "CKPT_DIR": "./c", "RESULTS_DIR": "r/../r"}])
def test_the_order_follows_from_the_files(folders: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in folders.items():
        monkeypatch.setenv(name, value)
    steps = by_key(asked(arms=("rft-updates", "rl-level2"), report=True))
    keys = list(steps)
    for before, after in (
        ("seed0/base", "seed0/stage1-rollouts"),
        ("seed0/stage1-problems", "seed0/stage1-rollouts"),
        ("seed0/stage1", "seed0/rl-level2"),
        ("seed0/rl-level2", "seed0/rft-updates-chunks"),
        ("seed0/rl-level2", "seed0/rft-updates-1-train"),
        ("seed0/rft-updates-0-train", "seed0/rft-updates-1-rollouts"),
        ("seed0/answers-rft-updates", "seed0/evaluate"),
        ("seed0/evaluate", "seed0/failure-modes"),
        ("seed0/passk-rl-level2", "seed0/passk"),
        ("claims", "page"),
    ):
        assert before in steps[after].after
        assert keys.index(before) < keys.index(after)
    assert "seed0/base" not in steps["seed0/stage1-problems"].after
    assert keys[-1] == "page"


def test_an_arm_of_rft_has_as_many_iterations_as_chunks() -> None:
    steps = by_key(asked(arms=("rft",), words=("rft-chunks:chunks=3",)))
    trained = [key for key in steps if key.endswith("-train")]
    assert trained == [f"seed0/rft-{number}-train" for number in range(3)]
    assert steps["seed0/answers-rft"].settings.models == ["rft:checkpoints/s/seed0/stage2-rft-iteration2/final"]
    assert steps["seed0/rft-2-rollouts"].settings.model == "checkpoints/s/seed0/stage2-rft-iteration1/final"


def test_rungs_of_the_ladder_hold_prompts_updates_and_loss_tokens_equal() -> None:
    """SFT's rungs differ in what they learn from alone."""
    rungs = ("gold-sft", "distil", "rft-once")
    steps, folder = by_key(asked(profile="tiny", arms=(*rungs, "rl-level2"))), "checkpoints/s/seed0"
    run = f"{folder}/stage2-rl-level2"
    for arm in rungs:
        problems, train = (steps[f"seed0/{arm}-{part}"] for part in ("problems", "train"))
        chunks = problems.settings
        assert (chunks.prompts_of, chunks.chunks, chunks.rows_per_chunk) == (run, 1, None)
        assert problems.settings.problems == steps["seed0/rl-level2"].settings.data.train_files[0]
        assert (train.settings.trainer.steps_of, train.settings.trainer.batch_of) == (run, run)
        assert train.settings.model.path == f"{folder}/stage1-rft/final"
        assert {"seed0/rl-level2"} <= {*problems.after}
    models = {arm: steps[f"seed0/{arm}-rollouts"].settings.model for arm in ("distil", "rft-once")}
    assert models == {"distil": f"{run}/final", "rft-once": f"{folder}/stage1-rft/final"}


def test_a_text_composes_no_function_that_the_study_holds_out() -> None:
    """As far as the plan says which: of every division of a seed's replicates."""

    def steps(pair: str, split: int = 0) -> list[Step]:
        words = (f"base:mix.pairs=[{pair}]", "base:mix.pair_chain=0.01")
        return plan(replace(asked(arms=("rl-level2",), words=words), replicates=(Replicate("s", 1, split),)))

    check_pairs(steps("[1, 5]"))
    with pytest.raises(UserError, match=r"^seed1/base: mix.pairs: func_2 is held out by SPLIT=0; name other pairs$"):
        check_pairs(steps("[1, 2]"))
    heldout = min(side("heldout", 61, (0, 3)))
    with pytest.raises(UserError, match=f"func_{heldout} is held out by SPLIT=61"):
        check_pairs(steps(f"[{heldout}, {heldout}]", 61))


@pytest.mark.parametrize(
    ("arm", "value", "keys"),
    [
        ("rl-raft", "raft", "algorithm.advantage"),
        ("rl-negatives", "dr_grpo", "algorithm.advantage"),
        ("rl-base", "checkpoints/s/seed0/base", "model.path"),
        ("rl-level2-shuffled", "shuffled", "reward.control trainer.keep_best"),
        ("rl-level2-format", "format", "reward.control trainer.keep_best"),
        ("rl-level2-random", "random", f"reward.control trainer.keep_best optim.lr {ENTROPY}"),
    ],
)
def test_an_arm_differs_from_rl_on_level_2_in_its_ingredient_alone(arm: str, value: str, keys: str) -> None:
    """Rungs of the ladder in the advantages or the start, controls in the reward; ``value``: of the first key."""
    steps = by_key(asked(profile="tiny", arms=(arm, "rl-level2")))
    own, rl = steps[f"seed0/{arm}"].flat, steps["seed0/rl-level2"].flat
    assert {key for key in own if own[key] != rl[key]} == {"trainer.output", *keys.split()}
    assert own[keys.split()[0]] == value


def test_splits_share_what_knows_all_functions_and_controls_are_in_the_first_of_each_seed() -> None:
    places = (Replicate("s", 20, 61), Replicate("s", 20, 62), Replicate("s", 21, 63))
    request = Request(
        "section41_42", "smoke", places, ("rl-level2",), ("rl-level2-shuffled",), report=True, record=True,
        registration="composition-3", test_seed=3,
    )  # fmt: skip
    steps = by_key(request)
    assert [key for key in steps if key.endswith("/stage1")] == ["seed20/stage1", "seed21/stage1"]
    made, folder = steps["seed20-split62/problems"].settings["test_heldout"], "data/s/seed20-split62/string_task"
    assert (made.seed, made.function_split, made.output) == (3, 62, f"{folder}/test_heldout.parquet")
    rl = steps["seed20-split62/rl-level2"].settings
    assert rl.model.path == "checkpoints/s/seed20/stage1-rft/final"
    assert rl.trainer.output == "checkpoints/s/seed20-split62/stage2-rl-level2"
    controls = [key for key in steps if key.endswith("/rl-level2-shuffled")]
    assert controls == ["seed20-split61/rl-level2-shuffled", "seed21-split63/rl-level2-shuffled"]
    assert all(step.one_lane for step in steps.values())
    accuracy = "accuracy/seed21-split63:results/s/seed21-split63/section41_42/results.parquet"
    assert accuracy in steps["claims"].settings.results
    assert steps["summary"].settings.models == ["base", "stage1", "rl-level2"]
    record = steps["record"].settings
    assert list(steps)[-1] == "record"
    assert (record.output, record.results) == (Path("results/records/s/study"), steps["claims"].settings.results)
    assert record.figure == f"{steps['figure'].settings.output}.png"


def test_every_seed_has_its_folders_and_all_of_them_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots may be elsewhere."""
    monkeypatch.setenv("CKPT_DIR", "/big disk")
    steps = by_key(asked(seeds=2, arms=("rl-level2",), report=True))
    audit, page = steps["audit"].settings, steps["page"].settings
    assert "data/s/seed0/string_task/test_heldout.parquet" in audit.files
    assert audit.against[0] == "data/s/seed0/string_task/stage2_level1/train.parquet"
    assert (str(page.study), page.checkpoints, page.data) == ("results/s", "/big disk/s", "data/s")
    assert steps["seed0/failure-modes"].settings.models == ["base", "stage1", "rl-level2"]
    for seed in (0, 1):
        for step, section in (("passk", "section44"), ("failure-modes", "section45")):
            assert str(steps[f"seed{seed}/{step}"].settings.output) == f"results/s/seed{seed}/{section}"
        passk = f"passk/seed{seed}:results/s/seed{seed}/section44/results.parquet"
        assert passk in steps["claims"].settings.results
        rl = steps[f"seed{seed}/rl-level2"].settings
        assert rl.trainer.output == f"/big disk/s/seed{seed}/stage2-rl-level2"
        assert (rl.data.seed, rl.rollout.seed) == (seed + 1, seed + 1)
        assert steps[f"seed{seed}/base"].settings.seed == seed
        assert f"stage1:/big disk/s/seed{seed}/stage1-rft/final" in steps[f"seed{seed}/evaluate"].settings.models
    assert steps["summary"].settings.inputs == [
        f"seed{seed}:results/s/seed{seed}/section41_42/results.parquet" for seed in (0, 1)
    ]


def test_a_model_that_is_given_is_the_base_of_the_study() -> None:
    for given, template in (("", "plain"), ("m/Other", "plain")):
        base = by_key(asked(profile="paper", base_model=given))["seed0/base"].settings
        assert (base.model, base.chat_template) == (given or "meta-llama/Llama-3.1-8B-Instruct", template)
    with pytest.raises(UserError, match="CHAT_TEMPLATE=plain: the model that this profile makes has"):
        plan(asked(chat_template="plain"))
    with pytest.raises(UserError, match=r"m/Other: the variants of dial differ in how the base is pretrained"):
        plan(asked("dial", base_model="m/Other"))


def test_a_word_reaches_the_steps_that_it_names() -> None:
    steps = by_key(asked(arms=("rl-level2", "rl-level1"), words=("rl-*:optim.lr=0.5", "rl-level1:optim.lr=0.25")))
    assert [steps[f"seed0/{name}"].settings.optim.lr for name in ("rl-level2", "rl-level1")] == [0.5, 0.25]
    assert IS_STEP_WORD.match("rl-*:optim.lr=0.5")
    assert not IS_STEP_WORD.match("arms=[a:b]")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"words": ("rl-level9:optim.lr=1",)},
            r"rl-level9:optim\.lr=1: no step rl-level9; there are: base, stage1-problems",
        ),
        ({"words": ("rl-level2:optim.lrr=1",)}, r"rl-level2: optim\.lrr: no such setting; did you mean"),
        ({"words": ("rl-level2:rollout.n=few",)}, r"rl-level2: rollout\.n=few: give a whole number"),
        ({"arms": ("rl-level9",)}, "no arm rl-level9; there are: base, stage1"),
        ({"profile": "paper/single"}, "profile paper has no numbers for single"),
        ({"study": "section9"}, "no study section9; there are: ablation, behavior_injection"),
        ({"variants": ("x",)}, "variants: no x; there are: none"),
        (
            {"passk": ("stage1", "rl-levle2"), "report": True},
            "passk: no arm rl-levle2; there are: base, stage1.*; did you mean rl-level2",
        ),
    ],
)
def test_p18_what_there_is_not_is_one_line(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        plan(asked(**{"arms": ("rl-level2",), **keys}))


@pytest.mark.parametrize(
    ("step", "word", "told"),
    [
        ("stage1-rollouts", "engine=fast", "engine=fast: unknown"),
        ("stage1", "mesh.tensor=3", "mesh.tensor=3 does not divide the"),
        ("rl-level2", "rollout.n=1", "rollout.n=1: a group of one"),
        ("problems", "files=[odd]", "no file odd; there are"),
    ],
)
def test_p26_a_study_refuses_what_its_scripts_refuse(step: str, word: str, told: str) -> None:
    """In the words of test_refusals.py."""
    with pytest.raises(UserError, match=re.escape(told)):
        dry_run(plan(asked(profile="tiny", arms=("rl-level2",), words=(f"{step}:{word}",)), [step]))


def test_p18_a_circle_and_a_step_that_only_does_not_name_are_one_line() -> None:
    rl = by_key(asked(arms=("rl-level2",)))["seed0/rl-level2"]
    one, two = (replace(rl, name=name, after=(f"seed0/{other}",)) for name, other in (("a", "b"), ("b", "a")))
    two = replace(two, env={**two.env, "OUTPUT": "elsewhere"})
    with pytest.raises(UserError, match=r"steps in a circle: seed0/. → seed0/. → seed0/.; each needs"):
        sort_steps([one, two])
    with pytest.raises(UserError, match="only=rl-9: unknown step; there are: base"):
        plan(asked(), ["rl-9"])


def test_what_has_the_machine_to_itself() -> None:
    """An arm that trains with verl whatever the engine; without GPUs else trainings of stages alone."""
    names = ("rl-domains", "rl-math", "sft-domains", "base-85k", "rl-85k")
    steps = by_key(asked("scaling_law", "tiny", arms=names))
    side_by_side = {name: step.one_lane for name in names for step in steps.values() if step.key == f"seed0/{name}"}
    assert side_by_side == {"rl-domains": False, "rl-math": False, "base-85k": True, "rl-85k": True}
    steps = by_key(asked(profile="tiny", arms=("rl-level2", "rl-level2-verl"), report=True))
    alone = [key for key, step in steps.items() if not step.one_lane]
    assert alone == ["seed0/base", "seed0/stage1", "seed0/rl-level2-verl"]
    with_gpus = by_key(asked(profile="tiny", arms=("rl-level2",), report=True, gpu=True))
    assert not with_gpus["seed0/stage1-rollouts"].one_lane  # it takes all of them


def test_completions_wait_for_the_stages_and_their_model_and_the_page_for_all() -> None:
    steps = by_key(asked(profile="tiny", arms=("rl-level2",), report=True))
    stages = {f"seed0/{name}" for name in load_study("section41_42").stages}
    for name, model in (("answers-base", set()), ("passk-stage1", set()), ("passk-rl-level2", {"seed0/rl-level2"})):
        assert {*steps[f"seed0/{name}"].after} == stages | model
    last = [key for key, step in steps.items() if step.whole]
    assert last == ["summary", "figure", "claims", "audit", "page"]
    assert all(not {*steps[key].after} & {*last} for key in last[:-1])
    assert {*steps["page"].after} == steps.keys() - {"page"}


def test_variants_are_studies_in_folders_of_their_own() -> None:
    steps = by_key(asked("ablation", "tiny", seeds=2, variants=("recipe", "wide")))
    assert steps["wide/seed1/base"].settings.model.width == 144
    assert steps["recipe/seed1/rl-level2"].settings.trainer.output == "checkpoints/s/recipe/seed1/stage2-rl-level2"
    assert {made.seed for made in steps["wide/seed1/problems"].settings.values()} == {2}  # of seed 0
    first = steps["wide/seed0/evaluate"].settings.problems[0]
    assert first.endswith("wide/seed0/string_task/validation_heldout.parquet")
    assert steps["summary"].settings.inputs == [
        f"{name}/seed{seed}:results/s/{name}/seed{seed}/section41_42/results.parquet"
        for name in ("recipe", "wide")
        for seed in range(2)
    ]


def test_a_plan_is_written_as_bash_and_make(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = plan(asked(profile="tiny", arms=("rl-level2",)))
    monkeypatch.setenv("CKPT_DIR", "/elsewhere")
    bash = shown(steps, "bash")
    assert subprocess.run(["bash", "-n"], input=bash, text=True, check=False).returncode == 0
    assert "STUDY=s SEED=0" in bash
    assert all(line.startswith("CKPT_DIR=/elsewhere ") for line in bash.splitlines()[1:])
    assert re.search(r"^seed0\.stage1: .*seed0\.base.*seed0\.stage1-filter", shown(steps, "make"), re.MULTILINE)


def test_an_arm_is_added_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (models.FOLDER / "section41_42.yaml").read_text() + (
        "  rl-dapo:\n    title: RL, DAPO\n    start: stage1\n    script: section41_42/stage2_rl_level2\n"
        "    words: [algorithm.clip_high=0.28]\n    model: stage2-rl-dapo/final\n    colour: '#123456'\n"
    )
    (tmp_path / "section41_42.yaml").write_text(text)
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    settings = by_key(asked(arms=("rl-dapo",)))["seed0/rl-dapo"].settings
    assert settings.algorithm.clip_high == 0.28
    assert settings.trainer.output == "checkpoints/s/seed0/stage2-rl-dapo"
    check_files(plan(asked(arms=("rl-dapo",))))
    for change, told in (
        ("env: {TRAIN_FILES: '{data}/level3/train.parquet'}", "data.train_files: data/.*level3.* does not exist"),
        ("env: {MODEL_PATH: '{ckpt}/nope/final'}", "rl-dapo: model.path: .*nope/final does not exist"),
        ("env: {OUTPUT: '{ckpt}/mine'}", ".*: models: .*stage2-rl-dapo/final does not exist, and no step of the study"),
        ("model: stage2-rl-level2/final", "seed0/rl-level2 and seed0/rl-dapo: both write .*stage2-rl-level2;"),
    ):
        kept = text if change.startswith("env") else text.replace("    model: stage2-rl-dapo/final\n", "")
        (tmp_path / "section41_42.yaml").write_text(
            kept.replace("    colour: '#123456'", f"    {change}\n    colour: '#123456'")
        )
        with pytest.raises(UserError, match=told):
            check_files(plan(asked(arms=("rl-level2", "rl-dapo"))))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("\ntitle:", "\nbase: section41_42\ntitle:"), r"section41_42\.yaml: base: section41_42 builds on itself"),
        (("start: stage1\n", "start: stage9\n"), r"arms\.rl-level1\.start: no arm stage9; there are: base, stage1"),
        (("stage2_rl_level1\n", "stage2_rl_level9\n"), r"bash/section41_42/stage2_rl_level9\.sh: no such file"),
        (("title: RL on level 1\n", "titel: RL on level 1\n"), r"section41_42\.yaml: arms\.rl-level1\.titel"),
        (("evaluated: [stage1, base]", "evaluated: [stage2]"), r"evaluated: no arm stage2"),
        (("title: RL on level 1\n", "title: [\n"), r"section41_42\.yaml: not readable as YAML: line \d+"),
    ],
)
def test_p18_a_study_that_does_not_fit_is_one_line(
    change: tuple[str, str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (models.FOLDER / "section41_42.yaml").read_text()
    assert change[0] in text
    (tmp_path / "section41_42.yaml").write_text(text.replace(*change, 1))
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    with pytest.raises(UserError, match=named):
        load_study("section41_42")


@pytest.mark.parametrize("study", ["section41_42", "behavior_injection"])
def test_p21_no_step_may_have_an_output_that_something_else_made(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's file and the result of another step are refused, of problem files also those of other settings."""
    for name in ROOTS.values():
        monkeypatch.setenv(name, str(tmp_path / name))
    arms = ("rl-level2", "rft") if study == "section41_42" else ("sft-bridge", "rl-bridge")
    for step in plan(asked(study, "tiny", arms=arms, report=True)):
        check_named(step, step.check_outputs)
        results = [Path(step.outputs[0] + ending) for ending in RESULTS.get(step.entry_point, [""])]
        maker = MADE_BY.get(step.entry_point, step.entry_point)
        if step.flat.get("answers_only"):
            model = step.settings.models[0].partition(":")[0]
            results, maker = [Path(step.outputs[0], "rollouts", model, "test")], "collect_rollouts"
            kept = results[0].with_name("all.parquet")  # of passk's answers, beside them
            kept.parent.mkdir(parents=True, exist_ok=True)
            if not kept.exists():
                with new_artefact(kept, Recipe("passk", {})) as partial:
                    partial.touch()
        refused = pytest.raises(UserError, match=f"^{re.escape(step.key)}: {re.escape(str(tmp_path))}")
        for result in results:
            result.parent.mkdir(parents=True, exist_ok=True)
            result.write_text("my notes")
            with refused:
                check_named(step, step.check_outputs)
            for made_by in ("another step", maker):
                remove(result)
                with new_artefact(result, Recipe(made_by, {})) as partial:
                    partial.touch() if result.suffix else partial.mkdir()
                with refused if made_by != maker or isinstance(step.settings, dict) else nullcontext():
                    check_named(step, step.check_outputs)


@pytest.mark.parametrize("dry", [True, False])
def test_p21_a_study_refuses_them_before_it_starts(dry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ROOTS.values():
        monkeypatch.setenv(name, str(tmp_path / name))
    notes = tmp_path / "CKPT_DIR/s/seed0/stage2-rl-level2/notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("my notes")
    monkeypatch.setenv("STUDY", "s")
    settings = RunStudySettings("section41_42", profile="tiny", arms=["rl-level2"], dry_run=dry)
    with pytest.raises(UserError, match=f"^seed0/rl-level2: {notes}: not of a training run; choose another folder"):
        run_study(settings)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [notes]


def test_a_dry_run_reads_no_table_that_an_earlier_step_makes_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    with new_artefact(tmp_path / "s/seed0/section41_42/results.parquet", Recipe("evaluate_accuracy", {})) as partial:
        partial.write_text("a table of another version")
    request, context = asked(profile="tiny", arms=("rl-level2",)), copy_context()
    with pytest.raises(UserError, match=f"^summary: {tmp_path}"):
        dry_run(plan(request, ["summary"]))
    dry_run(plan(request, ["evaluate", "summary"]))
    assert is_to_be_checked(tmp_path / "s/seed0/section41_42", dry=True), "the next dry run knows nothing of it"
    context.run(OUTDATED.set, {tmp_path / "a/b"})
    assert not any(context.run(is_to_be_checked, tmp_path / name, dry=True) for name in ("", "a", "a/b"))
    assert context.run(is_to_be_checked, tmp_path / "s", dry=True)


def test_why_a_step_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compositionality.rft.tables import split_chunks

    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    words = ("*problems:files=[stage2_level2/train]", "rft-chunks:rows_per_chunk=20")
    problems, chunks = plan(asked(arms=("rft",), words=words[1:]), ["problems", "rft-chunks"])
    assert problems.why().startswith("missing: ")
    from compositionality.config.problem_sets import create_problem_set

    create_problem_set([*problems.command_words[:1], *problems.words, "set=string", "files=[stage2_level2/train]",
                        f"output={tmp_path}/s/seed0/string_task"])  # fmt: skip
    split_chunks(chunks.settings)
    (again,) = plan(asked(arms=("rft",), words=words[1:]), ["rft-chunks"])
    assert again.why() == ""
    (other,) = plan(asked(arms=("rft",), words=("rft-chunks:rows_per_chunk=21",)), ["rft-chunks"])
    assert other.why() == "other settings: rows_per_chunk=21, made with 20"
    (forced,) = plan(asked(arms=("rft",), words=(*words[1:], "rft-chunks:force=true")), ["rft-chunks"])
    assert forced.why() == "force"
    Path(again.settings.problems).touch()
    (older,) = plan(asked(arms=("rft",), words=words[1:]), ["rft-chunks"])
    assert older.why().startswith("older: ")


if __name__ == "__main__":
    found = {f"{study} {profile}": digests(study, profile) for study, profile in CASES}
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    print(f"{GOLDEN}: {sum(map(len, found.values()))} steps")
