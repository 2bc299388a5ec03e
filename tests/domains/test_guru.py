"""Preparing rows of several domains: guru's columns in every form, gold answers, filters, mixes, orders, subsets."""

import base64
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compositionality.config.cli import parse
from compositionality.data.problems import read_problems
from compositionality.domains.guru import PrepareGuruSettings, prepare_guru
from compositionality.domains.sample import DOMAINS, DomainSampleSettings, make_domain_sample
from compositionality.errors import UserError
from compositionality.reward.verl_reward import compute_score
from compositionality.rft.solutions import SolutionSettings, write_solutions

RATE = "qwen2.5_7b_pass_rate"


def packed(value: Any) -> str:
    return base64.b64encode(gzip.compress(json.dumps(value).encode())).decode()


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A row of guru's mathematics."""
    return {
        "data_source": "math__deepscaler_preview",
        "prompt": [{"role": "user", "content": f"What is {number} + 1?"}],
        "ability": "math",
        "apply_chat_template": True,
        RATE: (number % 11) / 10,
        "qwen3_30b_pass_rate": 1.0,
        "reward_model": {"style": "rule", "ground_truth": str(number + 1)},
        "extra_info": {"split": "train", "index": number, "reward_metric": "", "original_question": ""},
        **changes,
    }


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def sums(count: int, start: int = 0, **changes: Any) -> list[dict[str, Any]]:
    return [row(number, **changes) for number in range(start, start + count)]


def strings(path: Path, count: int) -> str:
    """A file of another domain, in verl's columns."""
    from compositionality.data.create_problems import create_problems, settings_for

    create_problems(settings_for("string", output=str(path), levels=(1,), count=count))
    return str(path)


def prepare(folder: Path, *words: str) -> Path:
    """Without judging gold answers, which starts processes, where the words do not ask for it."""
    return prepare_guru(parse(PrepareGuruSettings, [f"output={folder}", "check_gold=false", *words]))


def prepared(tmp_path: Path, *words: str, name: str = "out") -> dict[str, list[dict[str, Any]]]:
    """The files of the output by name."""
    out = prepare(tmp_path / name, *words)
    for path in out.glob("*.parquet"):
        read_problems(path)
    return {path.stem: pq.read_table(path).to_pylist() for path in out.glob("*.parquet")}


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [one["extra_info"]["row"] for one in rows]


def test_every_form_of_a_row_is_read_and_can_be_judged(tmp_path: Path) -> None:
    whole = packed({"split": "train", "index": 7})
    parts = {"part_1": whole[:9], "part_2": whole[9:]}
    compressed = {"style": "rule", "ground_truth": {"compressed": packed("8")}}
    files = [
        write(tmp_path / "nested.parquet", sums(3)),
        write(tmp_path / "packed.parquet", [row(7, extra_info=parts, reward_model=compressed)]),
        write(tmp_path / "text.parquet", [row(20, prompt="What is 20 + 1? Put it in \\boxed{}.")]),
    ]
    read_problems(tmp_path / "nested.parquet")
    read_problems(tmp_path / "packed.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: no parquet file in it"):
        prepared(tmp_path, f"files=[{tmp_path / 'empty'}]")
    rows = prepared(tmp_path, f"files=[{tmp_path}]")["train"]
    assert len(files) == 3
    assert [one["reward_model"]["ground_truth"] for one in rows] == ["1", "2", "3", "8", "21"]
    assert [one["prompt"][-1]["content"].count("\\boxed") for one in rows] == [1] * 5
    assert {one["group"] for one in rows} == {"math"}
    foreign = compute_score("math__x", "\\boxed{8}", {"compressed": packed("8")}, parts)
    assert (foreign["score"], foreign["error"]) == (1.0, 0.0)
    broken = compute_score("math__x", "\\boxed{8}", {"compressed": packed("8")[:20]}, None)
    assert (broken["score"], broken["error"]) == (0.0, 1.0)


def test_unusable_rows_are_counted_with_their_reason_and_too_many_are_an_error(tmp_path: Path) -> None:
    bad = [
        row(100, reward_model={"style": "rule", "ground_truth": "\\frac{1"}),
        row(101, data_source="nobody_knows"),
        row(102, prompt=[{"role": "user", "content": " "}]),
        row(103, **{RATE: 3.0}),
    ]
    words = [f"files=[{write(tmp_path / 'a.parquet', [*sums(6), *bad])}]"]
    with pytest.raises(UserError, match=r"a.parquet: row 6: ground_truth .* \(4 of 10 rows .* max_refused=0.01"):
        prepared(tmp_path, *words)
    with pytest.raises(
        UserError, match=r"no row of code in .* \(4 rows cannot be used; the first: ground_truth .*brace"
    ):
        prepared(tmp_path, *words, "domains=[code]")
    assert not (tmp_path / "out").exists()
    assert len(prepared(tmp_path, *words, "max_refused=0.5")["train"]) == 6
    told = (tmp_path / "out/refused.csv").read_text().splitlines()
    assert len(told) == 5
    for line, words_of_it in zip(told[1:], ("a brace is missing", "unknown data_source", "prompt", RATE), strict=True):
        assert words_of_it in line


def test_a_reference_program_that_fails_its_tests_is_no_row_to_train_on(tmp_path: Path) -> None:
    truth = {"style": "rule", "ground_truth": json.dumps({"inputs": ["1\n"], "outputs": ["2\n"]})}
    programs = {"right": "print(int(input()) + 1)", "wrong": "print(int(input()) + 2)", "none": None}
    rows = [
        row(number, data_source="codegen__taco", prompt=f"Print one more: {name}.", reward_model=truth,
            extra_info={"index": number, "reference": program})
        for number, (name, program) in enumerate(programs.items())
    ]  # fmt: skip
    words = [f"files=[{write(tmp_path / 'a.parquet', rows)}]", "max_refused=0.5"]
    assert numbers(prepared(tmp_path, *words, "check_gold=true")["train"]) == [0, 2]
    assert "its own gold answer is judged wrong" in (tmp_path / "out/refused.csv").read_text()
    assert numbers(prepared(tmp_path, *words, name="all")["train"]) == [0, 1, 2]


def test_a_sample_of_every_domain_is_made_and_prepared(tmp_path: Path) -> None:
    """Gold answers and reference programs are judged right; what they need lies in the files."""
    sample = make_domain_sample(parse(DomainSampleSettings, [f"output={tmp_path / 'raw'}", "count=12"]))
    parts = prepared(tmp_path, f"files=[{sample}]", "max_refused=0", "holdout=12", "order=shuffled", "check_gold=true")
    assert {one["group"] for one in parts["train"]} == set(DOMAINS)
    rows = parse(SolutionSettings, [f"problems={tmp_path / 'out/train.parquet'}", f"output={tmp_path / 'sft'}"])
    assert pq.read_table(write_solutions(rows) / "train.parquet").num_rows == len(parts["train"])
    assert len((tmp_path / "out/refused.csv").read_text().splitlines()) == 1
    with pytest.raises(UserError, match="count=2: simulation has 12 kinds and levels; give 12 or more"):
        make_domain_sample(parse(DomainSampleSettings, [f"output={tmp_path / 'few'}", "count=2"]))


def test_one_domain_is_trained_on_and_all_are_held_out(tmp_path: Path) -> None:
    """The hold-out is that of all domains, whichever are trained on; the parts for SFT and RL share no row."""
    files = [write(tmp_path / "a.parquet", sums(40)), strings(tmp_path / "s.parquet", 40)]
    words = [f"files=[{','.join(files)}]", "holdout=20", "order=shuffled"]
    whole = prepared(tmp_path, *words, "first_share=0.25")
    assert {name: len(part) for name, part in whole.items()} == {"train": 60, "holdout": 20, "first": 15, "rest": 45}
    asked = {name: [str(one["prompt"]) for one in part] for name, part in whole.items()}
    assert sorted(asked["first"] + asked["rest"]) == sorted(asked["train"])
    rows = prepared(tmp_path, *words, "train_domains=[math]", name="m")
    assert rows["holdout"] == whole["holdout"]
    assert {one["group"] for one in rows["train"]} == {"math"}
    assert {str(one["prompt"]) for one in rows["train"]} <= set(asked["train"])
    assert {one["group"] for one in prepared(tmp_path, words[0], "domains=[math]", name="o")["train"]} == {"math"}


def test_a_report_of_mixed_files_says_what_they_hold_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        *sums(3),
        row(0),
        row(1, reward_model={"style": "rule", "ground_truth": "\\frac{1"}),
        row(5, data_source=""),
    ]
    write(tmp_path / "a.parquet", rows)
    strings(tmp_path / "s.parquet", 4)
    before = sorted(tmp_path.iterdir())
    prepare_guru(parse(PrepareGuruSettings, [f"files=[{tmp_path}]", "report_only=true"]))
    told = capsys.readouterr().out
    cells = {line.split()[0]: line.split()[1:] for line in told.splitlines() if line.startswith((" math__", " string"))}
    assert cells["math__deepscaler_preview"] == ["5", "1", "4", "1", "1", "49", "49"]
    assert [row[:5] for name, row in cells.items() if "string" in name] == [["4", "0", "4", "1", "0"]]
    assert "a.parquet: row 4: ground_truth" in told
    assert "a.parquet: row 5: no data_source" in told
    assert told.count("its ground truth: ") == 2
    assert sorted(tmp_path.iterdir()) == before


def test_pass_rates_filter_and_order(tmp_path: Path) -> None:
    unknown = [row(22, **{RATE: float("nan")}), row(23, **{RATE: None})]
    file = write(tmp_path / "a.parquet", sums(22) + unknown)
    words = [f"files=[{file}]", "min_pass_rate=0.1", "max_pass_rate=0.9", "order=easy_to_hard"]
    rows = prepared(tmp_path, *words)["train"]
    rates = [one["extra_info"]["pass_rate"] for one in rows]
    assert rates == sorted(rates, reverse=True)
    assert len(rates) == 18
    assert 0.1 <= min(rates) <= max(rates) <= 0.9
    with pytest.raises(UserError, match="no row is left of 24"):
        prepare(tmp_path / "x", f"files=[{file}]", "min_pass_rate=0.96", "max_pass_rate=0.99")


def test_long_prompts_are_left_out(tmp_path: Path) -> None:
    long = row(50, prompt=[{"role": "system", "content": "x" * 90}, {"role": "user", "content": "What is 1 + 1?"}])
    words = [f"files=[{write(tmp_path / 'a.parquet', [*sums(3), long])}]"]
    assert len(prepared(tmp_path, *words, "max_prompt_characters=100")["train"]) == 3
    with pytest.raises(UserError, match="raise max_prompt_characters"):
        prepare(tmp_path / "y", *words, "max_prompt_characters=9")


def test_a_holdout_has_the_domains_and_difficulties_of_the_rest(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.parquet", sums(110)), strings(tmp_path / "s.parquet", 110)]
    parts = prepared(tmp_path, f"files=[{','.join(files)}]", "holdout=44")
    assert len(parts["holdout"]) == 44
    assert Counter(one["group"] for one in parts["holdout"]) == {"math": 22, "string": 22}
    rates = Counter(one["extra_info"]["pass_rate"] for one in parts["holdout"] if one["group"] == "math")
    assert all(rates[rate] == 2 for rate in (0.0, 1.0))
    prompts = [{one["prompt"][-1]["content"] for one in part} for part in parts.values()]
    assert prompts[0].isdisjoint(prompts[1])
    assert len(prompts[0]) + len(prompts[1]) == 220


def test_a_balanced_holdout_is_half_easy(tmp_path: Path) -> None:
    words = [f"files=[{write(tmp_path / 'a.parquet', sums(110))}]", "holdout=20", "balance=true"]
    held = prepared(tmp_path, *words)["holdout"]
    assert sum(one["extra_info"]["pass_rate"] >= 0.3 for one in held) == 10
    with pytest.raises(UserError, match=r"only 30 rows are hard"):
        prepare(tmp_path / "x", words[0], "holdout=80", "balance=true")


def test_a_subset_of_fewer_rows_takes_those_there_are_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"files=[{write(tmp_path / 'a.parquet', sums(25))}]"]
    parts = prepared(tmp_path, *words, "subsets=[20,40]")
    assert {name: len(part) for name, part in parts.items()} == {"train": 25, "subset-20": 20, "subset-40": 25}
    assert "subset-40: the 25 rows that there are\n" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"subsets=\[25, 5\]: of 25 rows none is left for 5"):
        prepare(tmp_path / "apart", *words, "subsets=[25,5]", "nested=false")


def test_domains_are_mixed_equally_and_subsets_are_nested_or_apart(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.parquet", sums(60)), strings(tmp_path / "s.parquet", 40)]
    words = [f"files=[{','.join(files)}]", "rows_per_domain=30", "order=shuffled"]
    parts = prepared(tmp_path, *words, "subsets=[10,20]")
    assert Counter(one["group"] for one in parts["train"]) == {"math": 30, "string": 30}
    texts = {name: {one["prompt"][-1]["content"] for one in part} for name, part in parts.items()}
    assert texts["subset-10"] < texts["subset-20"] < texts["train"]
    again = prepared(tmp_path, *words, "subsets=[10,20]", "nested=false", name="apart")
    apart = [{str(one["prompt"]) for one in again[f"subset-{size}"]} for size in (10, 20)]
    assert apart[0].isdisjoint(apart[1])
    with pytest.raises(UserError, match="string has 40 rows"):
        prepare(tmp_path / "y", words[0], "rows_per_domain=50")


def test_the_same_rows_come_out_again_and_a_prompt_counts_once(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", [*sums(8), *sums(4)])
    words = [f"files=[{file}]", "order=shuffled", "workers=2", "check_gold=true"]
    first = prepared(tmp_path, *words)["train"]
    assert numbers(first) == numbers(prepared(tmp_path, *words, name="z")["train"])
    assert sorted(numbers(first)) == list(range(8))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["files=[]"], "files: give one file or more"),
        (["files=[absent.parquet]"], "absent.parquet: no such file"),
        (["files=[a]", "min_pass_rate=0.5", "max_pass_rate=0.4"], "min_pass_rate=0.5 is above"),
        (["files=[a]", "subsets=[3,3]"], "give different whole numbers"),
        (["files=[a]", "order=hard"], "order=hard: choose as_read, shuffled, easy_to_hard"),
        (["files=[a]", "subsets=[0]"], "subsets"),
        (["files=[a]", "domains=[physics]"], "domains: no domain 'physics'; there are: string, .*math, code"),
        (["files=[a]", "domains=[math,code]", "train_domains=[stem]"], "no domain 'stem'; there are: math, code"),
        (["files=[F]", "domains=[math,code]"], "domains: no row of code in .*; leave it out"),
        (["files=[F]", "train_domains=[code]"], "train_domains: no row of code is left"),
        (["files=[F]", "first_share=0.05"], "first_share=0.05 of 3 rows leaves a part empty"),
    ],
)
def test_bad_settings_are_one_line(tmp_path: Path, words: list[str], told: str) -> None:
    file = write(tmp_path / "f.parquet", sums(3))
    with pytest.raises(UserError, match=told):
        prepare(tmp_path / "out", *(one.replace("F", file) for one in words))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "changes",
    [
        *({"level": level} for level in ("hard", 2**62, -3, 1.5)),
        *({"reward_model": {"ground_truth": truth}} for truth in (float("nan"), float("inf"), True, None)),
        {"extra_info": {"part_1": 5}},
        {"prompt": None},
        {"prompt": [{"role": None, "content": "x"}]},
    ],
    ids=str,
)
def test_p18_a_cell_of_another_kind_is_named_with_its_row(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = write(tmp_path / "raw.parquet", sums(20, **changes))
    with pytest.raises(UserError, match=r"raw\.parquet: row 0: .*20 of 20 rows cannot be used"):
        prepare_guru(PrepareGuruSettings(files=(file,), output=str(tmp_path / "out"), check_gold=False))
    assert not (tmp_path / "out").exists()


def test_a_gap_of_pandas_is_no_level(tmp_path: Path) -> None:
    file = write(tmp_path / "raw.parquet", sums(20, level=float("nan")))
    prepare_guru(PrepareGuruSettings(files=(file,), output=str(tmp_path / "out"), check_gold=False))
    assert read_problems(tmp_path / "out/train.parquet")["level"].to_pylist() == [0] * 20


def test_p02_no_question_is_in_train_and_holdout_whatever_its_blanks_and_system_turn(tmp_path: Path) -> None:
    question = {"role": "user", "content": "What is 1 + 1?"}
    prompts = [
        [{**question, "content": f"What is {number} {blanks} 1?"}] for number in range(12) for blanks in ("+", " +\n")
    ] + [
        [{"role": "system", "content": "Think."}, {**question, "content": f"What is {number} + 1?"}]
        for number in range(12)
    ]
    file = write(tmp_path / "raw.parquet", [row(1, prompt=prompt) for prompt in prompts])
    prepare_guru(PrepareGuruSettings(files=(file,), output=str(tmp_path / "out"), holdout=5, check_gold=False))
    files = (read_problems(tmp_path / f"out/{name}.parquet") for name in ("train", "holdout"))
    parts = [{" ".join(prompt[-1]["content"].split()) for prompt in file["prompt"].to_pylist()} for file in files]
    assert [len(part) for part in parts] == [7, 5]
    assert not parts[0] & parts[1]


def test_a_copy_that_was_left_out_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [changed for copy in sums(15) for changed in ({**copy, RATE: None}, {**copy, RATE: 0.5})]
    rows += [{**copy, RATE: 0.5, "reward_model": {"ground_truth": "-1"}} for copy in sums(3)]
    file = write(tmp_path / "raw.parquet", rows)
    settings = {"files": (file,), "output": str(tmp_path / "out"), "min_pass_rate": 0.1, "check_gold": False}
    prepare_guru(PrepareGuruSettings(**settings))
    assert len(read_problems(tmp_path / "out/train.parquet")) == 15
    assert "twice with another truth 3" in capsys.readouterr().out
