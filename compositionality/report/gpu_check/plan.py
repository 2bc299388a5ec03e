"""The steps of the check: commands of ``examples/`` in a folder of its own, small enough for minutes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sizes:
    """How much a step does."""

    model: tuple[str, ...]
    pretrain_steps: int
    completions: int
    rows: int
    batch_rows: int
    prompts: int
    n: int
    steps: int
    max_tokens: int


GPU = Sizes(
    model=("layers=8", "width=448", "heads=7", "head_width=64", "feed_forward=1216"),  # 20 M weights
    pretrain_steps=150, completions=2048, rows=1024, batch_rows=128, prompts=64, n=8, steps=4, max_tokens=400,
)  # fmt: skip
CPU = Sizes(
    model=("layers=2", "width=64", "heads=2", "head_width=32", "feed_forward=64"),  # vLLM takes no narrower heads
    pretrain_steps=4, completions=32, rows=32, batch_rows=16, prompts=4, n=2, steps=2, max_tokens=24,
)  # fmt: skip


@dataclass(frozen=True)
class CheckStep:
    """One command. ``kind``: what its figures are read from; ``needs``: engines, and the model that it starts from."""

    name: str
    kind: str
    words: tuple[str, ...]
    engines: frozenset[str]
    model: Path | None = None
    output: Path | None = None


@dataclass(frozen=True)
class Subject:
    """One of the models that are checked: its short name, its folder, the profile whose settings it has."""

    name: str
    model: Path
    profile: str


def subjects(work: Path, device: str, model: str) -> list[Subject]:
    """The model made here and, where one is given, that."""
    made, given = ("smoke", "smoke") if device == "cpu" else ("single", "instruct")
    found = [Subject("made", work / "made" / "base", made)]
    return [*found, Subject("given", Path(model), given)] if model else found


def steps_of(subject: Subject, work: Path, sizes: Sizes, run: Sequence[str]) -> Iterator[CheckStep]:
    """All steps of one model, in an order in which each finds what it reads; ``run``: where trainings compute."""
    folder = work / subject.name
    yield _problems(subject, folder / "train.parquet", sizes.rows)
    yield _problems(subject, folder / "validation.parquet", 8)
    if subject.name == "made":
        yield _pretraining(subject, sizes, run)
    for engine in ("builtin", "vllm"):
        yield _rollouts(subject, folder, engine, sizes)
    for engine in ("single", "verl"):
        yield _sft(subject, folder, engine, sizes, run)
    for engine, sampler in (("single", "builtin"), ("single", "vllm"), ("verl", "vllm")):
        yield _grpo(subject, folder, engine, sampler, sizes, run)
    for engine, trained in (("single", "grpo-single-builtin"), ("verl", "grpo-verl-vllm")):
        yield _reload(subject, folder, engine, folder / trained / "final", sizes)


def _problems(subject: Subject, output: Path, count: int) -> CheckStep:
    own = ("task=string", "mode=clean", f"split={output.stem}", "levels=[1,2]", f"count={count}", f"output={output}")
    name = f"{subject.name} problems {output.stem}"
    return CheckStep(name, "problems", ("create_problems", f"profile={subject.profile}/single", *own), frozenset())


def _pretraining(subject: Subject, sizes: Sizes, run: Sequence[str]) -> CheckStep:
    shape = [f"model.{word}" for word in sizes.model]
    own = (*shape, f"steps={sizes.pretrain_steps}", "warmup=1", "log_every=1", "save_every=100000", *run)
    words = ("pretrain_tiny", f"profile={subject.profile}/single", *own, f"output={subject.model}")
    return CheckStep(f"{subject.name} pretrain", "pretrain", words, frozenset({"single"}), None, subject.model)


def _rollouts(subject: Subject, folder: Path, engine: str, sizes: Sizes) -> CheckStep:
    output = folder / f"rollouts-{engine}"
    words = (
        *("collect_rollouts", f"profile={subject.profile}/single", f"model={subject.model}", f"engine={engine}"),
        *(f"problems={folder / 'train.parquet'}", f"n_samples={sizes.completions // sizes.rows}"),
        *(f"max_tokens={sizes.max_tokens}", f"output={output}"),
    )
    needs = frozenset({"single" if engine == "builtin" else engine})
    return CheckStep(f"{subject.name} rollouts {engine}", "rollouts", words, needs, subject.model, output)


def _sft(subject: Subject, folder: Path, engine: str, sizes: Sizes, run: Sequence[str]) -> CheckStep:
    output = folder / f"sft-{engine}"
    words = (
        *("train_sft", f"profile={subject.profile}/{engine}", f"engine={engine}", f"model.path={subject.model}"),
        *(f"data.train_file={folder / 'sft.parquet'}", f"trainer.batch_rows={sizes.batch_rows}", "trainer.epochs=1"),
        *(f"trainer.output={output}", *run),
    )
    return CheckStep(f"{subject.name} sft {engine}", "sft", words, frozenset({engine}), subject.model, output)


def _grpo(subject: Subject, folder: Path, engine: str, sampler: str, sizes: Sizes, run: Sequence[str]) -> CheckStep:
    output = folder / f"grpo-{engine}-{sampler}"
    words = (
        *("train_grpo", f"profile={subject.profile}/{engine}", f"engine={engine}", f"model.path={subject.model}"),
        *(f"data.train_files=[{folder / 'train.parquet'}]", f"data.val_files=[{folder / 'validation.parquet'}]"),
        *(f"data.prompts_per_step={sizes.prompts}", f"rollout.engine={sampler}", f"rollout.n={sizes.n}"),
        *(f"rollout.max_tokens={sizes.max_tokens}", "rollout.gpu_memory=0.4", f"trainer.steps={sizes.steps}"),
        *("trainer.save_every=0", f"trainer.eval_every={sizes.steps}", "algorithm.dynamic_sampling=false"),
        *("algorithm.drop_equal_groups=false", f"trainer.output={output}", *run),
    )
    needs = frozenset({engine, sampler}) - {"builtin"}
    return CheckStep(f"{subject.name} grpo {engine} {sampler}", "grpo", words, needs, subject.model, output)


def _reload(subject: Subject, folder: Path, engine: str, model: Path, sizes: Sizes) -> CheckStep:
    words = (
        *("collect_rollouts", f"profile={subject.profile}/single", f"model={model}", "engine=builtin", "limit=8"),
        *(f"problems={folder / 'train.parquet'}", f"max_tokens={sizes.max_tokens}"),
        f"output={folder / f'reload-{engine}'}",
    )
    return CheckStep(f"{subject.name} reload {engine}", "reload", words, frozenset({engine}), model)
