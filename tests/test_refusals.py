"""What a start refuses within its first minute, its dry run refuses in the same words (P26): a table, both ways.

And what is in the place of a result and is not ours stays as it is (P21). Every row runs in this process as a person
would type it. Nothing may be left of a refused start.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from steps import BASES, OTHERS, make_inputs, typed

from compositionality.config.verbs import VERBS

REFUSALS = [  # entry point, words beside its base, what is said
    ("summarise_seeds", "inputs=[]", "inputs: give at least one, as inputs=[seed0:FOLDER,...]"),
    ("train_grpo", "rollout.engine=server", "rollout.engine=server: give rollout.server_url"),
    ("train_grpo", "rollout.engine=server rollout.server_url=here", "here: not the address of a server"),
    ("train_grpo", "model.attention=flash_attention_2", "model.attention=flash_attention_2: needs a GPU"),
    ("train_sft", "model.attention=flash_attention_2", "model.attention=flash_attention_2: needs a GPU"),
    ("train_grpo", "rollout.engine=sglang", "rollout.engine=sglang: not one of builtin, vllm, server"),
    ("train_grpo", "algorithm.advantage=gae", "algorithm.advantage=gae: engine=single has no critic"),
    ("train_grpo", "algorithm.updates_per_step=3", "updates_per_step=3 does not divide data.prompts_per_step=8"),
    ("train_grpo", "mesh.tensor=3", "mesh.tensor=3 does not divide the 1 processes"),
    ("train_grpo", "model.path=STRANGE", "model_type 'gpt2' is none of llama, qwen2, qwen3"),
    ("train_grpo", "trainer.epochs=1 data.prompts_per_step=99", "24 problems are less than a step"),
    ("train_grpo", "trainer.epochs=1 data.train_limit=9", "with data.train_limit give trainer.steps"),
    ("train_grpo", "rollout.max_tokens=9999", "data.max_prompt_tokens + rollout.max_tokens"),
    ("train_grpo", "data.train_files=[ROWS]", "has no column"),
    ("train_grpo", "trainer.output=MODEL", "is inside the input"),
    ("train_grpo", "model.path=ODD", "ODD: its chat template does not render a question: Expected an expression"),
    ("train_sft", "model.path=ODD", "ODD: its chat template does not render a question: Expected an expression"),
    ("collect_rollouts", "model=ODD", "ODD: its chat template does not render a question: Expected an expression"),
    ("train_grpo", "data.train_files=[LOOP]", "Symlink loop from 'LOOP'; give another path"),
    ("train_grpo", "trainer.output=LOOP", "LOOP/final'; give another path"),
    ("train_grpo", "data.prompt_template=MODEL", "MODEL: Is a directory; give a file, not a folder"),
    ("train_grpo", "algorithm.dynamic_sampling=true algorithm.drop_equal_groups=false", "=false contradicts it"),
    ("train_grpo", "algorithm.overlong_buffer=99", "algorithm.overlong_buffer=99 is more than rollout.max_tokens"),
    ("train_grpo", "data.max_prompt_tokens=5", "prompts are longer than max_prompt_tokens=5"),
    ("train_grpo", "data.train_files=[]", "data.train_files: give at least one problem file"),
    ("train_grpo", "reward.function=no.py", "reward.function=no.py: no.py does not exist"),
    ("train_sft", "model.path=STRANGE", "model_type 'gpt2' is none of llama, qwen2, qwen3"),
    ("train_sft", "trainer.steps=1 trainer.tokens=9", "give trainer.steps or this, not both"),
    ("train_sft", "data.max_length=4", "rows are longer than data.max_length=4"),
    ("collect_rollouts", "engine=openai", "engine=openai needs base_url"),
    ("collect_rollouts", "engine=openai base_url=here", "here: not the address of a server"),
    ("collect_rollouts", "engine=builtin model=STRANGE", "model_type 'gpt2' is none of llama, qwen2, qwen3"),
    ("collect_rollouts", "dtype=float8", "dtype=float8: must be one of auto"),
    ("collect_rollouts", "max_tokens=9999", "the longest prompt + max_tokens"),
    ("collect_rollouts", "max_prompt_tokens=3", "24 prompts are longer than max_prompt_tokens=3"),
    ("collect_rollouts", "output=ROLLOUTS n_samples=9", "n_samples: 2 then, 9 now"),
    ("collect_rollouts", "output=HALF n_samples=9", "holds half-finished rollouts of other settings or inputs"),
    ("evaluate", "problems=[a:TRAIN,a:OTHER]", "have the same name 'a'"),
    ("passk", "n_samples=1", "pass@k needs at least 2 samples"),
    ("passk", "levels=[77]", "has no level 77"),
    ("create_problems", "count=7 levels=[1,2]", "count=7: give a multiple of"),
    ("create_problems", "ids=[999]", "no function has the id 999"),
    ("create_problems", "split=nope", "split=nope: no such split"),
    ("filter_rollouts", "problems=OTHER", "its rollouts come from another problem file"),
    ("filter_rollouts", "max_length=9", "give tokenizer=MODEL_PATH too"),
    ("filter_problems", "min_correct_ratio=1", "the first must be below the second"),
    ("filter_problems", "problems=OTHER", "its rollouts come from another problem file"),
    ("split_chunks", "chunks=99", "24 rows are too few for 99 chunks"),
    ("merge_data", "inputs=[TRAIN,ROWS]", "ROWS: has columns messages"),
    ("merge_data", "inputs=[TRAIN,COPY]", "row 0 has a prompt of TRAIN;"),
    ("failure_modes", "judge=true", "judge=true: set JUDGE_BASE_URL=http://HOST:PORT/v1 and JUDGE_MODEL=NAME"),
    ("failure_modes", "judge=true judge_base_url=here judge_model=j", "here: not the address of a server"),
    ("failure_modes", "judge=true judge_base_url=http://x judge_model=j level=9", "level=9: the problems have levels"),
    ("failure_modes", "levels=[9]", "levels=[9]: the problems have levels [1, 2]"),
    ("failure_modes", "rollouts=[] evaluation=MODEL", "MODEL: has no rollouts; run examples/evaluate.py, or give"),
    ("failure_modes", "problems=[OTHER]", "answers none of the files in problems"),
    ("failure_modes", "problems=[MODEL]", "MODEL: not a file; give a parquet or .jsonl file"),
    ("export_checkpoint", "checkpoint=MODEL", "MODEL: no checkpoint of verl"),
    ("write_solutions", "subgoals=true", "string problems have no subgoals"),
    ("make_domain_sample", "count=1", "give 12 or more"),
    ("prepare_guru", "holdout=24", "holdout=24: there are"),
    ("prepare_guru", "rows_per_domain=99", "rows_per_domain=99: string has"),
    ("prepare_guru", "min_pass_rate=0.5", "no row is left of 24"),
    ("pretrain_tiny", "drop=[999]", "no function has the id 999"),
    ("pretrain_tiny", "optimizer=muon mesh.shard=true", "optimizer=muon: needs whole matrices"),
    ("pretrain_tiny", "optimizer=muon mesh.tensor=2 run.processes=2", "optimizer=muon: needs whole matrices"),
    ("pretrain_tiny", "mix.echo=1.0", "the shares of mix add up to 1 or more"),
    ("pretrain_tiny", "packing.length=20", "packing: needs a row for each of 1 processes"),
    ("audit_data", "files=[ROWS]", "ROWS: has no column prompt"),
    ("audit_data", "files=[]", "files: give at least one problem file"),
    ("pretrain_tiny", "dtype=bfloat16", "dtype=bfloat16 needs mesh.shard=true"),
    ("pretrain_tiny", "model.heads=5", "must be a multiple of heads=5"),
    ("collect_rollouts", "engine=fast", "engine=fast: unknown"),
    ("merge_data", "inputs=[a,a]", "a is given twice"),
    ("split_chunks", "rows_per_chunk=9 rollout_budget=9", "rows_per_chunk or rollout_budget, not both"),
    ("write_solutions", "padded=true subgoals=true", "neutral text in place of behaviours"),
    ("influence", "projection.kind=sketch projection.size=9", "projection.size=9: give a multiple of"),
    ("influence", "advantage=rloo", "advantage=rloo"),
    ("summarise_seeds", "influence=[seed0:a,seed0:b]", "have the same name 'seed0'"),
    ("summarise_seeds", "output=OUT.json", "must end in .csv"),
    ("fit_scaling", "laws=[cubic]", "laws: cubic unknown"),
    ("claims", "output=OUT.csv", "must end in .json"),
    ("train_sft", "model.dtype=bfloat16", "model.dtype=bfloat16 needs a GPU or several processes"),
    ("train_sft", "mesh.tensor=2 run.processes=3", "does not divide the 3 processes"),
    ("train_grpo", "rollout.n=1", "rollout.n=1: a group of one"),
    ("train_grpo", "trainer.keep=some", "trainer.keep=some: must be at least 1 or all"),
    ("train_sft", "trainer.keep=0", "trainer.keep=0: must be at least 1 or all"),
    ("train_grpo", "model.dtype=bfloat16 mesh.shard=false", "model.dtype=bfloat16 needs mesh.shard=true"),
    ("evaluate", "models=[a:MODEL,a:STRANGE]", "have the same name 'a'"),
    ("evaluate", "engine=fast", "engine=fast: unknown"),
    ("passk", "pairs=[a:b]", "pairs: a:b: give MODEL:BASE"),
    ("failure_modes", "evaluation=e", "give one of the two"),
    ("set_chat_template", "model=BARE", "BARE: no weights (*.safetensors) in the model folder"),
    ("set_chat_template", "chat_template=odd", "chat_template=odd: choose own"),
]  # fmt: skip
FULL = [  # what the full set-up alone can check
    ("train_sft", "engine=verl run.processes=2 trainer.batch_rows=7", "batch_rows=7 is not a multiple of the 2 proc"),
    ("train_sft", "engine=verl data.max_length=99999", "is less than data.max_length=99999"),
    ("train_grpo", "engine=verl verl.data.colour=red", "verl has no such key"),
    ("train_grpo", "engine=verl rollout.engine=sglang", "the package sglang is not installed"),
    ("train_grpo", "engine=verl rollout.engine=builtin", "rollout.engine=builtin: not one of vllm, sglang"),
    ("train_grpo", "engine=verl reward.control=format trainer.keep_best=false", "engine=verl does not have it"),
    ("train_grpo", "engine=verl model.lora.rank=4 model.lora.targets=[nope]", "targets: no linear layers nope"),
    ("train_grpo", "engine=verl run.processes=3", "32 responses (of a step) cannot be shared evenly by 3 processes"),
    ("train_grpo", "engine=verl trainer.steps=99", "last for 3 of trainer.steps=99 steps"),
    ("train_grpo", "engine=verl verl.trainer.test_freq=1", "test_freq=1 validates, and there is no data.val_files"),
    ("train_grpo", "engine=verl trainer.output=TAKEN", "not of a training run; choose another folder"),
    ("train_sft", "engine=verl trainer.batch_rows=99", "20 rows are less than one batch; trainer.batch_rows=99"),
    ("train_sft", "engine=verl trainer.output=TAKEN", "not of a training run; choose another folder"),
    ("train_grpo", "rollout.engine=vllm rollout.temperature=0.001", "vLLM takes 0 (greedy), or from 0.01 to 2"),
    ("collect_rollouts", "engine=vllm temperature=3", "temperature=3: vLLM takes 0 (greedy), or from 0.01 to 2"),
    ("train_grpo", "rollout.engine=vllm rollout.top_p=0.9", "vLLM only tells log-probs after truncation"),
    ("train_grpo", "model.lora.rank=4 model.lora.targets=[nope]", "no linear layers nope; there are: down_proj, gate"),
    ("train_sft", "model.lora.rank=4 model.lora.targets=[nope]", "targets: no linear layers nope"),
]  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_inputs(tmp_path_factory.mktemp("refusals"))


def refused(
    row: tuple[str, str, str], places: Mapping[str, Path], out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, words, said = row
    there = {**places, "OUT": out / "new"}
    capsys.readouterr()
    for more in (("--dry-run",), ()):
        assert typed(entry, f"{BASES[entry]} {words}", there, *more) == 2, more
        line = capsys.readouterr().err.strip().splitlines()[-1]
        for name, path in there.items():
            line = line.replace(str(path), name)
        assert line.startswith("error: "), line
        assert said in line, (more, line)
        assert not [path for path in out.rglob("*") if not path.name.endswith((".lock", ".owner"))]


INPUTS = ("MODEL", "TRAIN", "OTHER", "ROWS", "ROLLOUTS")
WRITING = sorted({*BASES, *OTHERS} - {"gpu_check", "preflight"})


NO_PLACES = {".": ".: not a place for a result", "FILE/new": ": FILE is a file, not a folder; choose another path"}
"""Paths in which no result can be, and what is said of them."""


@pytest.mark.parametrize("place", NO_PLACES)
@pytest.mark.parametrize("entry", [entry for entry in BASES if re.search(r"=OUT\b(?!\.)", BASES[entry])])
def test_p26_the_working_folder_and_a_file_are_no_place_for_a_result(
    entry: str,
    place: str,
    places: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").touch()
    said = NO_PLACES[place] if "NOWHERE" not in BASES[entry] else ""  # the start misses its input first
    refused(
        (entry, re.search(r"\S+=OUT\b", BASES[entry])[0].replace("OUT", place), said), places, tmp_path / "out", capsys
    )
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"]


@pytest.mark.parametrize("place", NO_PLACES)
@pytest.mark.parametrize("entry", WRITING)
def test_p26_nor_are_they_where_no_input_is_there(
    entry: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").touch()
    places = {name: tmp_path / "absent" / name for name in (*INPUTS, "NOWHERE")}
    words = re.sub(r"\bOUT(\.\w+)?", place, {**BASES, **OTHERS}[entry])
    assert typed(entry, words, places, "--dry-run") == 2


@pytest.mark.parametrize("entry", BASES)
def test_a_dry_run_without_a_fault_passes_and_writes_nothing(
    entry: str, places: dict[str, Path], tmp_path: Path
) -> None:
    assert typed(entry, BASES[entry], {**places, "OUT": tmp_path / "new"}, "--dry-run") in (0, None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("entry", sorted({*BASES, *OTHERS} - {"create_problems"}))
def test_a_dry_run_needs_no_input(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "NNODES", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    names = ("MODEL", "TRAIN", "OTHER", "ROWS", "ROLLOUTS", "NOWHERE", "OUT")
    assert typed(entry, {**BASES, **OTHERS}[entry], {name: Path(name.lower()) for name in names}, "--dry-run") == 0
    assert not list(tmp_path.iterdir())


INPUTS_OF = [(entry, words, name) for entry, words in {**BASES, **OTHERS}.items() for name in INPUTS if name in words]
INPUTS_OF += [  # not of the shortest words
    ("evaluate", f"{BASES['evaluate']} rollouts=[r:ROLLOUTS]", "ROLLOUTS"),
    ("filter_rollouts", f"{BASES['filter_rollouts']} tokenizer=MODEL max_length=9", "MODEL"),
    ("split_chunks", f"{BASES['split_chunks']} prompts_of=NOWHERE", "TRAIN"),
    ("prepare_guru", "files=[TRAIN,OTHER] output=OUT", "OTHER"),
    ("publish", "what=[ROLLOUTS,NOWHERE] output=OUT licence=mit", "ROLLOUTS"),
]


def refused_damaged(entry: str, words: str, name: str, folder: Path) -> bool:
    """Whether a dry run exits with 2 for a damaged input, a file or a folder, where no other input is there."""
    places = {word: folder / word for word in (*INPUTS, "NOWHERE", "OUT")}
    places |= {word: folder / f"{word}.parquet" for word in ("TRAIN", "OTHER", "ROWS")}
    if places[name].suffix:
        places[name].write_text("damaged")
    else:
        places[name].mkdir()
        (places[name] / "config.json").write_text("damaged")
    code = typed(entry, words, places, "--dry-run")
    assert list(folder.iterdir()) == [places[name]]
    return code == 2


@pytest.mark.parametrize(("entry", "words", "name"), INPUTS_OF)
def test_p26_a_dry_run_refuses_a_damaged_input_where_no_other_is_there(
    entry: str, words: str, name: str, tmp_path: Path
) -> None:
    assert refused_damaged(entry, words, name, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("entry", "name"), [("train_grpo", "TRAIN"), ("train_sft", "ROWS")])
def test_p26_so_it_does_with_verl(entry: str, name: str, tmp_path: Path) -> None:
    assert refused_damaged(entry, f"{BASES[entry]} engine=verl", name, tmp_path)


def test_every_verb_has_a_dry_run_here() -> None:
    assert {*VERBS} - {*BASES, *OTHERS} == {"run_study", "wandb"}  # no steps


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row[0]} {row[1]}")
def test_p26_a_dry_run_refuses_what_a_start_refuses(
    row: tuple[str, str, str], places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(row, places, tmp_path, capsys)


@pytest.mark.full
@pytest.mark.parametrize("row", FULL, ids=lambda row: f"{row[0]} {row[1]}")
def test_p26_with_all_packages_a_dry_run_refuses_what_a_start_refuses(
    row: tuple[str, str, str], places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(row, places, tmp_path, capsys)


@pytest.mark.full
@pytest.mark.parametrize("entry", ["train_grpo", "train_sft"])
def test_a_dry_run_with_verl_and_no_validation_file_passes(entry: str, places: dict[str, Path], tmp_path: Path) -> None:
    assert typed(entry, f"{BASES[entry]} engine=verl", {**places, "OUT": tmp_path / "new"}, "--dry-run") == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("entry", WRITING)
def test_p21_a_foreign_folder_is_refused_and_left_alone(
    entry: str, places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {**BASES, **OTHERS}[entry]
    out = tmp_path / re.sub(r".*OUT(\.\w+)?.*", r"new\1", words)
    files = ("steps/notes.txt", "results.parquet", "influence.parquet", "scaling.json", "p/notes.txt")
    notes = [out / name for name in files]
    for note in notes:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text("my notes")
    errors = set()
    no_inputs = entry in OTHERS or entry == "export_checkpoint"
    for more in ((),) if no_inputs else ((), ("--dry-run",)):
        assert typed(entry, words, {**places, "OUT": tmp_path / "new"}, *more) == 2, more
        errors.add(capsys.readouterr().err.strip().splitlines()[-1])
    absent = {name: tmp_path / "absent" / path.name for name, path in places.items()}
    assert typed(entry, words, {**absent, "OUT": tmp_path / "new"}, "--dry-run") == 2
    assert [error[:7] for error in errors] == ["error: "]
    assert all(note.read_text() == "my notes" for note in notes)
    asks_first = entry in ("evaluate", "passk", "failure_modes")  # what it makes of the answers is refused
    assert asks_first or sorted(path for path in out.rglob("*") if path.is_file()) == sorted(notes)
