"""Registrations: their format, the copy beside the results, and what becomes of a claim that was changed since."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from omegaconf import OmegaConf
from studies import evaluation, problem_file, right

from compositionality.data.artefact import file_hash, new_artefact
from compositionality.errors import UserError
from compositionality.evaluate.claims.run import ClaimsSettings, claims_text, decide_claims
from compositionality.evaluate.registration import Frozen, freeze, read_registration

LEVEL = "string-heldout-level3"
CLAIMS = """
results:
  accuracy: {metric: accuracy, script: bash/section41_42/run_all.sh}
claims:
  - {name: gain, text: RL gains, comparisons: [{group: heldout, level: 3, model: rl, base: stage1, threshold: 0.05}]}
  - {name: less, text: but not much, comparisons: [{group: heldout, level: 3, model: rl, base: stage1, rule: <=, threshold: 0.5}]}
  - {name: more, text: by the way, comparisons: [{group: heldout, level: 3, model: rl, threshold: 0.1}]}
controls:
  - {name: noise, text: no gain, comparisons: [{group: heldout, level: 3, model: noise, base: stage1, rule: <=, threshold: 0.5}]}
"""  # noqa: E501
GOOD: dict[str, Any] = {
    "title": "a study", "study": "section41_42", "profile": "smoke", "primary": ["gain"], "secondary": ["less"],
    "arms": ["rl-level2"], "replicates": {20: [61, 62], 21: [63]}, "test_seed": 31, "failed": "a step ends in an error",
}  # fmt: skip


def registration(folder: Path, **changes: Any) -> Path:
    """A registration and its claims in ``folder``."""
    (folder / "claims.yaml").write_text(CLAIMS)
    path = folder / "study.yaml"
    OmegaConf.save(OmegaConf.create({**GOOD, "claims": str(folder / "claims.yaml"), **changes}), path)
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"replicates": {12: [61]}}, "replicates: seed 12: seeds 10 to 19 are reserved for tuning"),
        ({"replicates": {20: [61], 21: [61]}}, "replicates: split 61 of seed 21 is one of seed 20 too"),
        ({"replicates": {20: []}}, "replicates: 20: .* one or more splits"),
        ({"replicates": {}}, "replicates: none"),
        ({"primary": list("abcdefg")}, "primary: 7 claims; one to 6"),
        ({"secondary": ["gain"]}, "primary and secondary: gain is named twice"),
        ({"controls": ["rl-level2"]}, "arms and controls: rl-level2 is named twice"),
        ({"replicates": {10**10: [64]}}, "replicates: 10000000000: .* all from 0 to 999,999,999"),
        ({"stopping": "when it is significant"}, "stopping=when it is significant: must be one of none"),
        ({"test_seed": -1}, "test_seed=-1"),
        ({"tests": 3}, "tests"),
    ],
)
def test_bad_registrations_are_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=rf"study.yaml: .*{said}"):
        read_registration(registration(tmp_path, **changes))


def test_what_a_study_runs_under_is_kept_and_does_not_change(tmp_path: Path) -> None:
    path, results = registration(tmp_path), tmp_path / "results" / "registration"
    first = freeze(str(path), "c0ffee", results)
    assert first.facts == {"registration": str(path), "sha256": file_hash(path), "commit": "c0ffee"}
    assert freeze(str(path), "later", results).facts == first.facts
    path.write_text(path.read_text() + "\n# more\n")
    with pytest.raises(UserError, match=r"study.yaml: changed since results exist .* or register another study"):
        freeze(str(path), "later", results)
    (results / "claims.yaml").write_text("results: {}")
    with pytest.raises(UserError, match=r"claims.yaml: altered"):
        Frozen(results).facts  # noqa: B018


def test_replicates_that_start_at_the_same_moment_keep_one_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, results = str(registration(tmp_path)), tmp_path / "results" / "registration"
    together = Barrier(2)

    @contextmanager
    def slow(*given: Any) -> Iterator[Path]:
        with suppress(BrokenBarrierError):
            together.wait(timeout=1)
        with new_artefact(*given) as partial:
            yield partial

    monkeypatch.setattr("compositionality.evaluate.registration.new_artefact", slow)
    with ThreadPoolExecutor(2) as pool:
        kept = [*pool.map(lambda _: freeze(path, "c0ffee", results).facts, range(2))]
    assert kept[0] == kept[1]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Evaluations of two seeds; not to be changed."""
    home, found = tmp_path_factory.mktemp("registered"), []
    for seed in range(2):
        problems = problem_file(home / f"heldout{seed}.parquet", {LEVEL: 100}, str(seed), split=61 + seed)
        outcomes = {"stage1": {LEVEL: right(20 + seed, 100)}, "rl": {LEVEL: right(60 + seed, 100)}}
        outcomes |= {"noise": {LEVEL: right(10, 100)}} if seed == 0 else {}
        folder = evaluation(home / f"run{seed}", {"heldout": problems}, outcomes, seed)
        found.append(f"accuracy/seed{seed}:{folder}")
    return found


@pytest.fixture
def study(seeds: list[str], tmp_path: Path) -> ClaimsSettings:
    """The two seeds under a registration; the claims are in claims.yaml."""
    given = registration(tmp_path, controls=["noise"], replicates={0: [61], 1: [62]})
    freeze(str(given), "c0ffee", tmp_path / "registration")
    return ClaimsSettings(
        seeds, tmp_path / "claims.json", str(tmp_path / "claims.yaml"), registration=str(tmp_path / "registration")
    )


def test_other_replicates_than_the_registered_are_refused(study: ClaimsSettings, tmp_path: Path) -> None:
    freeze(str(registration(tmp_path)), "c0ffee", tmp_path / "other")
    study.registration = str(tmp_path / "other")
    with pytest.raises(
        UserError, match="results: accuracy: without seed 20 split 61, seed 20 split 62, seed 21 split 63"
    ):
        decide_claims(study)


def decided(settings: ClaimsSettings) -> dict[str, Any]:
    return json.loads(decide_claims(settings).read_text())


def statuses(content: dict[str, Any]) -> dict[str, str]:
    return {row["claim"]: row["registration_status"] for row in content["claims"]}


def test_registered_claims_are_told_from_others_and_controls_are_decided_where_they_were_registered(
    study: ClaimsSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    claims, study.claims = Path(study.claims), ""  # those of the registration
    content = decided(study)
    assert statuses(content) == {"gain": "primary", "less": "secondary", "more": "exploratory"}
    assert [row["primary"] for row in content["claims"]] == [True, False, False]  # over these Holm's procedure goes
    assert content["registration"]["commit"] == "c0ffee"
    assert content["registration"]["claims_sha256"] == file_hash(claims)
    assert "gain (primary) RL gains" in claims_text(content)
    assert "gain (primary)" in capsys.readouterr().out
    (control,) = content["controls"]
    assert (control["decision_these_seeds"], control["comparisons"][0]["values"]) == ("supported", [-0.1])
    assert "noise: in 1 of 2 replicates." in content["notes"]


def test_changed_claims_are_refused_or_marked(study: ClaimsSettings) -> None:
    claims = Path(study.claims)
    text = CLAIMS.replace("base: stage1, threshold: 0.05", "base: stage1, threshold: 0.01").replace(
        "by the way", "also"
    )
    claims.write_text(text.replace("less", "fewer"))
    with pytest.raises(UserError, match=r"claims.yaml: changed since results exist under .* or pass --post-hoc"):
        decide_claims(study)
    assert not study.output.exists()
    study.post_hoc = True
    content = decided(study)
    assert statuses(content) == {"gain": "post hoc", "fewer": "post hoc", "more": "exploratory"}
    assert content["notes"][1] == "Post hoc: claim less was registered and is not decided any more."
    assert "gain (post hoc)" in claims_text(content)


def test_claims_of_another_file_are_exploratory(study: ClaimsSettings, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(CLAIMS.replace("threshold: 0.05", "threshold: 0.3"))
    study.claims = str(own)
    assert statuses(decided(study)) == {"gain": "exploratory", "less": "secondary", "more": "exploratory"}


def test_a_decision_that_the_committed_record_has_otherwise_names_both(study: ClaimsSettings, tmp_path: Path) -> None:
    """The same tables at another commit: what they are counted with has changed."""
    content = decided(study)
    assert re.search(r"Trained and sampled at 0\.\S+\.", " ".join(content["notes"]))
    record = tmp_path / "study" / "record.json"
    record.parent.mkdir()
    record.write_text(json.dumps({**content, "code": "0.1+abc"}))
    study.recorded = str(tmp_path)
    decided(study)
    record.write_text(
        json.dumps({**content, "code": "0.1+abc"}).replace('"decision": "supported"', '"decision": "undecided"')
    )
    with pytest.raises(UserError, match=r"claim gain: undecided, counted at 0.1\+abc; supported, counted at 0"):
        decide_claims(study)
    study.post_hoc = True
    assert decided(study)["claims"] == content["claims"]
