"""A registration held against its study, its hashes, git and what a person gives beside it."""

import re
import shutil
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from compositionality.config.profile import load_profile
from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import read_claims_file
from compositionality.evaluate.registration import FOLDER, check_apart, read_registration
from compositionality.study import registered as module
from compositionality.study.plan import plan
from compositionality.study.registered import (
    check_fits,
    check_test_seed,
    note_test_seed,
    register,
    registered,
    registered_request,
    registered_study,
)

GOOD: dict[str, Any] = {
    "title": "a study", "study": "section41_42", "profile": "smoke", "claims": "composition", "primary": ["H2"],
    "arms": ["rl-level2", "rl-level1"], "replicates": {20: [61, 62], 21: [63]}, "test_seed": 31, "failed": "an error",
}  # fmt: skip
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "small.yaml"
    OmegaConf.save(OmegaConf.create({**GOOD, **changes}), path)
    return path


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that stands for the code's, with a registration and its hashes committed. Not to be changed."""
    folder = tmp_path_factory.mktemp("repository")
    for file in (*(f"{room}/code.py" for room in module.ROOMS), "bash/study.sh"):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text("1\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "code"]):
        git(folder, *words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROOT", folder)
        register(str(write(folder)))
    shutil.copyfile(FOLDER.parent / "claims" / "composition.yaml", folder / "claims.yaml")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "registered")
    return folder


@pytest.fixture
def committed(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The registration in a copy of that repository."""
    shutil.copytree(repository, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "claims_path", lambda name: tmp_path / "claims.yaml")
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "results"))
    for function in (check_test_seed, note_test_seed):
        monkeypatch.setattr(module, function.__name__, partial(function, path=tmp_path / "test_seeds.yaml"))
    return tmp_path / "small.yaml"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_registrations_that_there_are_can_be_read(path: Path) -> None:
    """And their claims are given the results that they read, and no others."""
    registration = read_registration(path)
    assert load_profile(registration.profile)
    request = registered_request(path.stem, registration, {})
    steps = {step.key: step.words for step in plan(replace(request, replicates=request.replicates[:2]))}
    for name in ("claims", "record"):
        given = next(word for word in steps[name] if word.startswith("results="))
        assert {*re.findall(r"([a-z]+)/seed", given)} == {
            *read_claims_file(registration.claims).results
        } & module.RESULT_KINDS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"study": "section9"}, "no study section9"),
        ({"profile": "huge"}, "huge"),
        ({"arms": ["rl-level9"]}, "no arm rl-level9; there are: base"),
        ({"controls": ["none"]}, "no arm none"),
        ({"claims": "nothing"}, "claims=nothing: no such file"),
        ({"primary": ["H77"]}, "primary: no claim H77 in composition"),
        ({"primary": ["H4"]}, "primary: H4 needs the results countdown, which this study does not make"),
        ({"primary": ["H3"]}, "primary: H3 compares rft, which is not in arms or controls"),
    ],
)
def test_what_there_is_not_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(UserError, match=rf"small.yaml: .*{said}"):
        check_fits(path, read_registration(path))


def test_hashes_are_added_once_and_comments_stay(tmp_path: Path) -> None:
    """A file that would be no YAML with them stays as it is."""
    path = write(tmp_path)
    path.write_text(f"# why\n{path.read_text()}")
    first = register(str(path)).read_text()
    assert first.startswith("# why\n")
    assert len(re.findall('^(?:claims|recipe)_sha256: "[0-9a-f]{64}"$', first, re.MULTILINE)) == 2
    assert register(str(path)).read_text() == first
    path.write_text(first + "...\n")
    with pytest.raises(UserError, match=r"small.yaml: hashes cannot be added at its end; write one key per line"):
        register(str(path))
    assert path.read_text() == first + "...\n"
    assert [file.name for file in tmp_path.iterdir()] == ["small.yaml"]


def test_claims_that_changed_are_decided_again_and_nothing_else_is_run(committed: Path, tmp_path: Path) -> None:
    registered_study(str(committed), [], {})
    claims = tmp_path / "claims.yaml"
    claims.write_text(claims.read_text().replace("0.05", "0.04"))
    git(tmp_path, "commit", "-q", "-am", "other thresholds")
    steps, _ = registered_study(str(committed), ["--post-hoc"], {})
    order = {step.name: step.after for step in steps}
    assert order == {"claims": (), "page": ("claims",), "record": ("claims", "page")}
    assert (steps[0].settings.post_hoc, steps[2].settings.force) == (True, True)


def test_results_of_a_registration_stay_its_own(
    committed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run writes nothing; the test seed of an earlier recipe is refused."""
    registered_study(str(committed), [], {}, dry=True)
    made = git(tmp_path, "rev-parse", "HEAD")
    assert capsys.readouterr() == ("", f"# {committed}: 3 replicates of 2 seeds, commit {made}\n")
    ledger = tmp_path / "test_seeds.yaml"
    note_test_seed(31, "another", "old.json", ledger)
    with pytest.raises(UserError, match=r"test seed 31 was used by another \(old.json\)"):
        registered_study(str(committed), [], {})
    assert not (tmp_path / "results").exists()
    ledger.unlink()
    steps, _ = registered_study(str(committed), [], {})
    kept = tmp_path / "results" / "small" / "registration" / "registration.yaml"
    assert kept.read_bytes() == committed.read_bytes()
    assert "31: " in ledger.read_text()
    assert len(registered_study(str(committed), [], {})[0]) == len(steps)


def test_claims_are_not_registered_anew_for_the_same_test_problems(
    committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered_study(str(committed), [], {})
    (tmp_path / "claims.yaml").write_text((tmp_path / "claims.yaml").read_text() + "# later\n")
    register(str(committed))
    git(tmp_path, "commit", "-q", "-am", "changed")
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(
        UserError, match=r"test seed 31 was used by registration small \w+ .*, not by registration small"
    ):
        registered_study(str(committed), [], {})
    assert not (tmp_path / "elsewhere").exists()


def test_replicates_are_run_so_many_at_a_time_at_the_registered_code_and_counted_at_any(
    committed: Path, tmp_path: Path
) -> None:
    """In a fresh clone, too, where only what is committed is there; claims, page and record when all are kept.

    The models of a kept replicate may lie elsewhere; what its seed shares is needed while another split is not kept.
    The cheat is one replicate, then other rewards, then the rest.
    """

    def planned(replicates: int | None = None) -> list[str]:
        steps, _ = registered_study(str(committed), [], {}, dry=True, replicates=replicates)
        assert any(step.whole for step in steps) == (replicates is None)
        return list(dict.fromkeys(step.place.name for step in steps))

    assert planned() == ["seed20", "seed20-split61", "seed20-split62", "seed21", "seed21-split63"]
    steps, _ = registered_study(str(committed), [], {}, dry=True)
    for name in ("claims", "record"):  # the registration is kept when the study begins: not there yet
        next(step for step in steps if step.name == name).check()
    keeps = {step.place.name: step.settings.completions for step in steps if step.name == "record-replicate"}
    assert keeps == {"seed20-split61": True, "seed20-split62": False, "seed21-split63": False}, "of the first alone"
    assert planned(2) == ["seed20", "seed20-split61", "seed20-split62"]
    finish("seed20-split61")
    assert planned() == ["seed20", "seed20-split62", "seed21", "seed21-split63", "seed20-split61"]  # of the whole study
    assert planned(1) == ["seed20", "seed20-split62"]
    said = r"no results of seed20-split62, seed21-split63 yet; REPLICATES=1 runs the next"
    with pytest.raises(UserError, match=said):
        planned(0)
    finish("seed20-split62")
    steps, _ = registered_study(str(committed), [], {}, dry=True, replicates=1)
    kept = next(step for step in steps if step.name == "record-replicate")
    assert kept.outputs == ["results/records/small/seed21-split63"]
    kept.check()  # in a dry run: its tables are not there yet
    assert {step.key for step in steps} == {*kept.after, kept.key}

    (tmp_path / "compositionality" / "reward" / "code.py").write_text("2\n")
    (tmp_path / "bash" / "study.sh").write_text("true # makes no number\n")
    git(tmp_path, "commit", "-q", "-am", "other rewards")
    said = r"its compositionality/reward changed since its commit \w{12}; check that commit out to run seed21, seed21-s"
    with pytest.raises(UserError, match=said):
        planned()
    finish("seed21-split63")
    steps, _ = registered_study(str(committed), [], {}, dry=True, replicates=1)
    assert {step.whole for step in steps} == {True}
    assert {step.place.name for step in steps} == {"seed20-split61"}
    assert "claims" in [step.name for step in steps]


def test_a_committed_registration_may_be_run_and_one_that_has_changed_may_not(committed: Path) -> None:
    registration, commit, moved = registered(str(committed))
    assert not moved
    assert commit == git(committed.parent, "rev-parse", "HEAD")
    assert registration.replicates == GOOD["replicates"]

    def refused(said: str, name: str, text: str) -> None:
        """With this text in a file of the repository; then the file is as it was."""
        path = committed.parent / name
        before = path.read_text()
        path.write_text(text)
        with pytest.raises(UserError, match=said):
            registered(str(committed))
        path.write_text(before)

    claims, text = (committed.parent / "claims.yaml").read_text(), committed.read_text()
    refused(r"small.yaml: changed since its commit", "small.yaml", text + "# later\n")
    refused(r"code that is not committed \(M bash/study.sh\)", "bash/study.sh", "false\n")
    changed = f"small.yaml: its claims changed since its commit {commit[:12]}; check that commit out to run it again"
    refused(changed, "claims.yaml", claims.replace("0.05", "0.04"))
    said = r"claims_sha256: missing; run REGISTRATION=.*small.yaml bash bash/confirmatory.sh register=true"
    refused(said, "small.yaml", re.sub("(.*_sha256|trees): .*\n", "", text))
    other = re.sub("recipe_sha256: .*", "recipe_sha256: 00ab", text)
    committed.write_text(re.sub("trees: .*", "", other))  # as composition-2, which has no trees
    git(committed.parent, "commit", "-q", "-am", "another recipe")
    with pytest.raises(UserError, match=r"small.yaml: its recipe changed since its commit \w+; check that commit out"):
        registered(str(committed))


def test_a_registration_of_an_earlier_commit_says_where_it_runs() -> None:
    with pytest.raises(UserError, match=r"its claims and recipe changed since its commit \w{12}; check that"):
        registered("composition-2")


def finish(name: str) -> None:
    """A replicate that is kept."""
    with new_artefact(Path("results/records/small", name), Recipe("write_record", {})) as partial:
        partial.mkdir()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"replicates": {20: [71]}}, "seed 20"),
        ({"replicates": {41: [62]}}, "split 62"),
        ({"test_seed": 31}, "test_seed 31"),
        ({"test_seed": 32}, "test_seed 32"),
        ({"test_seed": 30}, "test_seed 30"),
    ],
)
def test_a_second_registration_of_the_same_seeds_says_why(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    first, apart = write(tmp_path), {"replicates": {40: [70], 41: [0]}, "test_seed": 35}
    second = tmp_path / "second.yaml"

    def check(**more: Any) -> None:
        OmegaConf.save(OmegaConf.create({**GOOD, **apart, **more}), second)
        for path in (second, first):
            check_apart(path, read_registration(path), tmp_path)

    check()
    with pytest.raises(UserError, match=rf"second.yaml: {what}: used by small, or next to its own; choose another"):
        check(**changes)
    check(**changes, reuses={"small": "the same models, other claims"})


def test_a_registered_study_takes_no_settings(committed: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"optim.lr=1: a registered study takes no settings"):
        registered_study(str(committed), ["optim.lr=1"], {})
    registration, *_ = registered(str(committed))
    for given, said in (
        ({"SEEDS": "7"}, "SEEDS=7: registered is none"),
        ({"PROFILE": "tiny"}, "PROFILE=tiny: registered is smoke"),
        ({"TEST_SEED": "2027"}, "TEST_SEED=2027: registered is 31"),
        ({"ARMS": "rft"}, "ARMS=rft: registered is rl-level2 rl-level1"),
        ({"MODEL_PATH": "m"}, "MODEL_PATH=m: a registered study takes no such variable; leave it out"),
        ({"TRAIN_FILES": "t"}, "TRAIN_FILES=t: a registered study takes no such variable"),
        ({"BASE_MODEL": "b"}, "BASE_MODEL=b: a registered study takes no such variable"),
    ):
        with pytest.raises(UserError, match=said):
            registered_request(str(committed), registration, given)
    request = registered_request(str(committed), registration, {"HOME": "/root", "PROFILE": "smoke"})
    assert (request.name, request.trained, request.test_seed) == ("small", ["rl-level2", "rl-level1"], 31)
    assert [one.name for one in request.replicates] == ["seed20-split61", "seed20-split62", "seed21-split63"]
    assert not (tmp_path / "results").exists()
