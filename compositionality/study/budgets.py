"""How much RL samples and trains, for RFT in the same budget; whether its problems last for its steps."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from compositionality.config.cli import parse
from compositionality.config.problem_sets import read_set
from compositionality.config.profile import layers_of, load_profile
from compositionality.errors import UserError
from compositionality.study.arms import find_arm, model_path
from compositionality.study.types import Study
from compositionality.train.common.metrics import SAMPLED, sampled_completions, trained
from compositionality.train.common.prompt_stream import check_problems_last
from compositionality.train.common.run_folder import flatten
from compositionality.train.grpo_settings import GrpoSettings, generation_batch

RL = "/stage2_rl_"
UNITS = {"updates": "steps", "tokens": "tokens"}
"""Of how long a training lasts, and the trainer's key for it."""
"""In the names of the scripts of RL."""


def rl_settings(profile: str, engine: str, script: str) -> GrpoSettings:
    """The profile's settings of the RL that ``script`` runs; the paths in them mean nothing."""
    words = [f"engine={engine}", "model.path=-", "data.train_files=[]", "trainer.output=-"]
    return parse(GrpoSettings, words, layers_of(f"{profile}/{engine}", "train_grpo", script))


def least_completions(settings: GrpoSettings, problems: int) -> int:
    """Completions that RL samples at least (without dynamic sampling exactly) where there are so many ``problems``."""
    steps, epochs = length_of(settings, problems)
    asked = problems * epochs if steps is None else generation_batch(settings) * steps
    return asked * settings.rollout.n


def length_of(settings: GrpoSettings, problems: int) -> tuple[int | None, int]:
    """Steps (None: until the problems are used up) and epochs, in verl's own words if they are given."""
    own, trainer = flatten(settings.verl), settings.trainer
    steps = own.get("trainer.total_training_steps", trainer.steps if trainer.epochs else trainer.last_step())
    epochs = int(own.get("trainer.total_epochs", trainer.epochs or 1))
    used_up = bool(trainer.epochs and steps and problems * epochs < generation_batch(settings) * steps)
    return None if used_up else steps, epochs


def only_the_run_tells(variables: Mapping[str, str], study: Study, arm: str, words: Sequence[str] = ()) -> bool:
    """Whether the arm's budget is known only once the run is finished of which it takes as many completions.

    So it is with dynamic sampling, and where ``words`` override the profile's settings.
    """
    other = find_arm(study, arm).budget_of
    if not other or variables.get("RFT_RL_ROLLOUTS"):
        return False
    if any("=" in word for word in words):
        return True
    return rl_settings(variables["PROFILE"], variables["ENGINE"], study.arms[other].script).algorithm.dynamic_sampling


def budget(variables: Mapping[str, str], study: Study, arm: str) -> int:
    """Completions that ``arm`` may sample: as many as the finished run of RL, else as its profile's settings say.

    UserError where only a run tells that is not finished; with DRY_RUN then as many as RL samples at least.
    """
    if variables.get("RFT_RL_ROLLOUTS"):
        return int(variables["RFT_RL_ROLLOUTS"])
    other = find_arm(study, arm).budget_of
    if not other:
        raise UserError(f"arm {arm}: no budget_of in compositionality/config/study; give RFT_RL_ROLLOUTS=COMPLETIONS")
    model = Path(model_path(study.arms[other], variables))
    settings = rl_settings(variables["PROFILE"], variables["ENGINE"], study.arms[other].script)
    there = model.is_dir()
    metrics = model.parent / "metrics.jsonl"
    found = sampled_completions(metrics) if there else None  # overrides included, which the profile does not know
    if found is None and (not settings.algorithm.dynamic_sampling or (variables.get("DRY_RUN") and not there)):
        problems = read_set("string", load_profile(variables["PROFILE"], variables["ENGINE"]))
        return least_completions(settings, problems.count("stage2_level2/train"))
    if found is None:
        what = f"has no {SAMPLED} for every step" if there else f"is not finished ({model} is missing)"
        raise UserError(
            f"{metrics}: arm {arm} samples as many completions as the run of {other}, which {what}; "
            f"run arm {other} first, or give RFT_RL_ROLLOUTS=COMPLETIONS"
        )
    return found


def problems_asked(variables: Mapping[str, str], study: Study, arm: str) -> int:
    """Problems that RL asks in that budget, each as often as a group is large."""
    script = study.arms[find_arm(study, arm).budget_of].script
    return budget(variables, study, arm) // rl_settings(variables["PROFILE"], variables["ENGINE"], script).rollout.n


def length_words(variables: Mapping[str, str], study: Study, arm: str) -> str:
    """``trainer.steps=N`` or ``trainer.tokens=N``: iteration $ITERATION's part of all that RL's finished run trained.

    Empty where RFT_BUDGET says nothing of it. UserError where the run is not finished; with DRY_RUN then any number.
    """
    unit = variables["RFT_BUDGET"]
    if unit not in UNITS:
        return ""
    model = Path(model_path(study.arms[find_arm(study, arm).budget_of], variables))
    iterations, number = int(variables["RFT_ITERATIONS"]), int(variables["ITERATION"])
    whole = iterations
    if model.is_dir() or not variables.get("DRY_RUN"):
        whole = trained(model.parent / "metrics.jsonl")[unit]
    part = whole * (number + 1) // iterations - whole * number // iterations
    return f"trainer.{UNITS[unit]}={max(part, 1)}"


def length_like(run: Path, unit: str, variables: Mapping[str, str]) -> str:
    """``trainer.steps=N`` or ``trainer.tokens=N``: as long as a finished ``run`` trained.

    UserError for another unit, or a run that is not finished; with DRY_RUN then any number.
    """
    if unit not in UNITS:
        raise UserError(f"SFT_BUDGET={unit}: choose {' or '.join(UNITS)}")
    there = (run / "final").is_dir()
    if not there and not variables.get("DRY_RUN"):
        raise UserError(f"{run}: not finished, and another arm trains as long as it did; run that arm first")
    return f"trainer.{UNITS[unit]}={trained(run / 'metrics.jsonl')[unit] if there else 1}"


def check_budgets(variables: Mapping[str, str], study: Study, arms: Iterable[str]) -> None:
    """UserError for an arm whose problems do not last for its steps, or whose budget no run of the study will tell."""
    names, profile, engine = list(arms), variables["PROFILE"], variables["ENGINE"]
    strings = read_set("string", load_profile(profile, engine))
    for name in names:
        arm = find_arm(study, name)
        if RL in arm.script and not arm.problems and engine == "verl":
            files = variables["STRING_TRAIN_LEVEL1TO2"].replace("string_task/", "").split()
            if "level1to2" not in arm.script:
                files = [f"stage2_{'level1' if arm.script.endswith('level1') else 'level2'}/train"]
            settings, count = rl_settings(profile, engine, arm.script), strings.count(*files)
            steps, epochs = length_of(settings, count)
            check_problems_last(f"arm {name}: {', '.join(files)}", count, epochs, generation_batch(settings), steps)
        if arm.budget_of not in names and only_the_run_tells(variables, study, name):
            budget({**variables, "DRY_RUN": ""}, study, name)
