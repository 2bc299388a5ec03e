"""What a start refuses of a damaged table, log or JSON file, its dry run refuses in the same line (P26)."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from bash_runs import typed
from report_study import make_study

from compositionality.data.artefact import read_manifest
from compositionality.evaluate.claims.run import ClaimsSettings, decide_claims
from compositionality.study.registered import write_manifest

TABLE, TRAINING = "results/tiny/seed1/section41_42/results.parquet", "results/tiny/seed1/section41_42/training.json"
CLAIMS, MACHINE = "results/tiny/claims.json", "results/tiny/section41_42/machine.json"
TIMES, LOG = "results/tiny/section41_42/times.tsv", "checkpoints/tiny/seed0/stage2-rl-level2/metrics.jsonl"
LABELS, FITS, POINTS = "results/tiny/seed1/section45/labels.parquet", "scaling/scaling.json", "scaling/runs.csv"
OF_ALL = "[" + ",".join(
    f"accuracy/seed{seed}:ROOT/results/tiny/seed{seed}/section41_42/results.parquet" for seed in (0, 1)
)
FAILURES = "failures/seed1:ROOT/results/tiny/seed1/section45/results.parquet"
VERBS = {  # words, and what they read
    "summarise_seeds": (f"inputs={OF_ALL}] output=ROOT/new.csv".replace("accuracy/", ""), (TABLE, TRAINING)),
    "claims": (f"results={OF_ALL},{FAILURES}] output=ROOT/new.json", (TABLE, TRAINING, LABELS)),
    "claims of fits": (f"results=[scaling/seed0:ROOT/{FITS}] claims=scaling_law output=ROOT/new.json", (FITS,)),
    "draw_figure": (f"inputs={OF_ALL}] output=ROOT/new.png".replace("accuracy/", ""), (TABLE, TRAINING)),
    "draw_figure of fits": (f"inputs=[ROOT/{FITS}] figure=scaling output=ROOT/new.png", (FITS,)),
    "fit_scaling": (f"points=[ROOT/{POINTS}] draws=20 output=ROOT/new", (POINTS,)),
    "write_record": (
        f"results={OF_ALL}] claims=ROOT/{CLAIMS} machine=ROOT/{MACHINE} times=ROOT/{TIMES} "
        f"runs=[rl:ROOT/checkpoints/tiny/seed0/stage2-rl-level2] fits=[flops:ROOT/{FITS}] output=ROOT/new",
        (TABLE, CLAIMS, MACHINE, TIMES, LOG, FITS),
    ),
    "report": (
        "study=ROOT/results/tiny checkpoints=ROOT/checkpoints/tiny output=ROOT/new",
        (TABLE, TRAINING, CLAIMS, MACHINE, TIMES, LOG, LABELS),
    ),
}  # fmt: skip


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def broken(path: Path) -> None:
    """In a file with a manifest, which it still fits: such a file was written so."""
    path.write_bytes(b'{"a": \xff\n\n')
    sign(path)


def lacking(path: Path) -> None:
    """Without its last column, or with its first key alone."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(table.select(table.column_names[:-1]), path)
    elif path.suffix == ".csv":
        pd.read_csv(path).iloc[:, :-1].to_csv(path, index=False)
    else:
        content = json.loads(path.read_text())
        path.write_text(json.dumps({key: content[key] for key in [*content][:1]}))
    sign(path)


def sign(path: Path) -> None:
    if manifest := read_manifest(path):
        write_manifest(path, manifest.model_dump())


DAMAGES = {".parquet": (cut, broken, lacking), ".json": (cut, broken, lacking), ".csv": (broken, lacking)}
CASES = [
    (verb, file, damage)
    for verb, (_, files) in VERBS.items()
    for file in files
    for damage in DAMAGES.get(Path(file).suffix, (broken,))
    if (file, damage) != (TRAINING, lacking)  # an arm without a report, as one that a stage makes
]


@pytest.fixture(scope="module")
def study(fits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with claims, failures, a run, and fits. Not to be changed."""
    root = tmp_path_factory.mktemp("damaged")
    made = make_study(root, n_seeds=2, parts=("failures", "runs"))
    shutil.copytree(fits.parent, root / "scaling")
    words = VERBS["claims"][0].replace("ROOT", str(root)).split()[0]
    results = re.findall(r"accuracy/[^,\]]+", words)
    decide_claims(ClaimsSettings(results, made.study / "claims.json"))
    return root


@pytest.mark.parametrize("verb", VERBS)
def test_a_dry_run_of_whole_inputs_passes_and_writes_nothing(verb: str, study: Path) -> None:
    before = sorted(study.rglob("*"))
    words = VERBS[verb][0].replace("ROOT", str(study)).split()
    assert typed(verb.partition(" ")[0], [*words, "--dry-run"]) in (0, None)
    assert sorted(study.rglob("*")) == before


@pytest.mark.parametrize(("verb", "file", "damage"), CASES, ids=lambda word: getattr(word, "__name__", word))
def test_p26_a_dry_run_refuses_a_damaged_file_as_a_start_does(
    verb: str,
    file: str,
    damage: Callable[[Path], None],
    study: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = tmp_path / "study"
    shutil.copytree(study, root)
    damage(root / file)
    words, lines = VERBS[verb][0].replace("ROOT", str(root)).split(), set()
    for more in (["--dry-run"], []):
        capsys.readouterr()
        assert typed(verb.partition(" ")[0], [*words, *more]) == 2, more
        lines.add(capsys.readouterr().err.strip().splitlines()[-1])
    assert len(lines) == 1
    assert str(root) in lines.pop()
    assert not [*root.glob("new*")]
