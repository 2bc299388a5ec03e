"""How entry points read settings and tell of errors."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from compositionality.config import cli
from compositionality.config.cli import exit_after, help_text, parse
from compositionality.config.profile import schema_of
from compositionality.config.verbs import VERBS, helps
from compositionality.data.create_problems import problem_settings
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, Fraction, Mark, OneOf, PositiveInt
from compositionality.tasks.registry import all_tasks
from compositionality.validation import phrases, range_of
from compositionality.yaml_files import _parsed, as_yaml, flow_list


@dataclass
class Inner:
    share: Fraction = 0.5
    kind: Annotated[str, OneOf(("red", "blue"))] = "red"


@dataclass
class Settings:
    output: str = REQUIRED
    folder: Path = Path("folder")
    count: PositiveInt = 3
    levels: list[PositiveInt] = field(default_factory=lambda: [1])
    files: list[str] = field(default_factory=list)
    limit: PositiveInt | None = None
    rate: float = 1.0
    arms: dict[str, dict[str, str]] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)


def test_overrides_become_a_typed_object() -> None:
    settings = parse(Settings, ["output=here", "levels=[1,2]", "limit=null", "inner.share=0.25"])
    assert settings == Settings(output="here", levels=[1, 2], inner=Inner(share=0.25))


@pytest.mark.parametrize(
    "path", ["données/a (1).parquet", "it's", 'say "x"', "a,b", "a=b", "~/x", "{x}", "[y]", "a b\\\\", "C:\\日本"]
)
def test_a_path_may_hold_any_letters(path: str) -> None:
    settings = parse(Settings, [f"output={path}", f"folder={path}"])
    assert (settings.output, settings.folder) == (path, Path(path))


def test_the_files_of_a_list_may_hold_any_letters_and_commas_in_quotes() -> None:
    settings = parse(
        Settings, ["output=x", """files=[é (1).parquet, it's, "a,b", 'c d', "{e}", 2024-01-01, on, 010]"""]
    )
    assert settings.files == ["é (1).parquet", "it's", "a,b", "c d", "{e}", "2024-01-01", "on", "010"]
    assert parse(Settings, ["output=x", "files=a, b.parquet"]).files == ["a, b.parquet"]  # one needs no brackets


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ([], "output"),
        (["output=x", "colour=red"], "colour: no such setting"),
        (["output=x", "cuont=1"], "did you mean count"),
        (["output=x", "share=1"], "did you mean inner.share"),
        (["output=x", "count=many"], "count=many: give a whole number"),
        (["output=x", "levels=[1"], "levels"),
        (["output=x", "levels=1"], r"levels=1: a list is needed: levels=\[1\]"),
        (["output=x", "levels=[1,0]"], "levels: 0: each must be at least 1"),
        (["output=x", "count=0"], "count=0: must be at least 1"),
        (["output=x", "limit=-1"], "limit=-1: must be at least 1"),
        (["output=x", "inner.share=nan"], "inner.share=nan: must be finite and from 0 to 1"),
        (["output=x", "inner.share=1.5"], "inner.share=1.5: must be from 0 to 1"),
        (["output=x", "inner.kind=green"], "inner.kind=green: must be one of red, blue"),
        (["output=x", "rate=inf"], "rate=inf: must be finite"),
        (["output=x", "inner.share=inf"], "inner.share=inf: must be finite and from 0 to 1"),
        (["output=x", "levels=[[1]]"], "levels"),
        (["output=x", "inner=3"], "inner=3: holds several keys; give inner.KEY=VALUE"),
        (["output=x", "folder="], "folder: is empty"),
        (["output=x", "count"], "count: no value"),
        (["output=x", "arms=3"], "arms=3: holds several keys"),
        (["output=x", "+count=3"], r"\+count=3: Hydra's signs \+, ~ and @ are not supported; give count=VALUE"),
        (["output=x", "~count"], "~count: Hydra's signs"),
        (["output=x", "--count=3"], "--count=3: keys have no dashes; give count=VALUE"),
        (["output=x", "--cuont=3"], "cuont: no such setting; did you mean count"),
        (["output=x", "count@inner=3"], "count@inner=3: Hydra's signs"),
        (["output=x", "--multirun"], "--multirun: not a setting; sweeps are not supported; give KEY=VALUE"),
        (["output=x", "count=1,2"], "count=1,2: give a whole number"),
        (["output=x", "count=true"], "count=true: give a whole number"),
        (["output=x", "count=null"], "count=null: may not be null"),
        (["output=x", "inner={share:1}"], r"inner.share:1: no such setting; in {key: value} a space stands after"),
        (["output=x", "files=[a"], r"files=\[a: .*; quote texts with special characters"),
        (["output=x", "rate={a: 1}"], r"rate={.*}: give a number"),
    ],
)
def test_p18_bad_settings_are_one_line(overrides: list[str], named: str) -> None:
    with pytest.raises(UserError, match=named):
        parse(Settings, overrides)


def test_a_dry_run_names_all_that_is_not_there_yet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "UNCHECKED", dict.fromkeys("abcde"))
    monkeypatch.setattr(sys, "argv", ["verb", "output=x", "--dry-run"])
    with pytest.raises(SystemExit):
        cli.run(Settings, print, "")
    assert capsys.readouterr().err.endswith(": a, b, c, d, e\n")


def test_every_task_shows_its_options() -> None:
    for task, mode in [(name, mode) for name, one in all_tasks().items() for mode in one.modes]:
        schema = problem_settings([f"task={task}", f"mode={mode}", "--help"])
        shown = help_text(schema, "Makes problems.")
        assert all(field.name in shown for field in fields(schema))
        assert all(phrases(schema).values())


def test_help_lists_every_setting_with_its_range_and_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = help_text(Settings, "Does a thing.")
    assert all(name in shown for name in ("Does a thing.", "output", "required", "int, at least 1", "levels"))
    assert "int | null, at least 1" in shown
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "50")
    narrow = help_text(Settings, "Does a thing.")
    assert max(map(len, narrow.splitlines())) <= 50
    assert narrow.split() == shown.split()


def test_help_of_rl_has_sections_and_an_example_with_own_rows() -> None:
    shown = help_text(schema_of("train_grpo"), helps()["train_grpo"])
    titles = [
        line.partition(":")[0] for line in shown.partition("Settings (key=value):")[2].splitlines() if line[:1].strip()
    ]
    assert titles == ["model", "mesh", "data", "rollout", "algorithm", "optim", "critic", "reward", "trainer", "run"]
    (words,) = re.findall(r"train_grpo (.*rows\.jsonl.*\\\n.*)\n", shown)
    parse(schema_of("train_grpo"), words.replace("\\\n", "").split())


FREE = {"algorithm.entropy_coef", "mesh", "packing"}
"""Numbers of any sign."""


@pytest.mark.parametrize("entry_point", sorted(VERBS.keys() - {"create_problems"}))
def test_every_setting_has_a_phrase_and_every_number_a_range(entry_point: str) -> None:
    for key, kind, phrase in settings_of(schema_of(entry_point)):
        assert phrase, f"{key} has no phrase"
        is_number = any(kind is one or one in get_args(kind) for one in (int, float)) or get_origin(kind) is Annotated
        assert not is_number or range_of(kind) or key in FREE, f"{key} has no range"


def settings_of(schema: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Key, type and phrase of every setting, nested ones too."""
    kinds, said = get_type_hints(schema, include_extras=True), phrases(schema)
    for entry in fields(schema):
        kind = kinds[entry.name]
        if all(isinstance(mark, Mark) for mark in getattr(kind, "__metadata__", [""])):
            kind = get_args(kind)[0]
        if is_dataclass(kind):
            yield from settings_of(kind, f"{prefix}{entry.name}.")
        else:
            yield prefix + entry.name, kind, said.get(entry.name, "")


def test_a_mapping_takes_any_key_below_it_or_all_at_once() -> None:
    arms = {"my-arm": {"title": "My arm", "colour": "#0072B2"}}
    assert parse(Settings, ["output=x", 'arms={my-arm: {title: My arm, colour: "#0072B2"}}']).arms == arms
    assert parse(Settings, ["output=x", "arms.my-arm.title=My arm", 'arms.my-arm.colour="#0072B2"']).arms == arms


def outcome(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Exit code and stderr of a command whose body is ``line``."""
    with pytest.raises(SystemExit) as end:
        exit_after(lambda: exec(line))
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "raise OSError(28, 'No space left on device', '/full/x')",
            "error: /full/x: No space left on device; free some, or choose another place\n",
        ),
        (
            "raise OSError('Error writing: [errno 28] No space left on device')",
            "error: Error writing: [errno 28] No space left on device; free some, or choose another place\n",
        ),
        ("open('/proc/.x.lock', 'w')", "error: /proc/.x.lock: no file can be made there; choose another path\n"),
        ("open('/proc/self')", "error: /proc/self: Is a directory; give a file, not a folder\n"),
        (
            "raise RuntimeError(\"Symlink loop from '/a'\")",  # as Path.resolve does
            "error: Symlink loop from '/a'; give another path\n",
        ),
        ("open('/proc/none/x', 'w')", "error: /proc/none/x: No such file or directory\n"),
        (
            "__import__('pathlib').Path('/etc/passwd/x').mkdir()",
            "error: /etc/passwd/x: /etc/passwd is a file, not a folder; choose another path, or move that file away\n",
        ),
        ("__import__('os').replace('/none/a', '/none/b')", "error: /none/a and /none/b: No such file or directory\n"),
        ("raise OSError(2, 'No such file', 'a\\nb')", "error: a\\nb: No such file\n"),
        ("bytearray(1 << 62)", "error: out of memory; free some, or use smaller batches or files\n"),
    ],
)
def test_what_the_machine_refuses_is_one_line_and_exit_code_2(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(line, capsys) == (2, said)


def test_the_traceback_of_an_error_is_shown_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing file may be a mistake of the code, whose place one line does not say."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    code, said = outcome("open('/none/x')", capsys)
    assert code == 2
    assert said.startswith("Traceback")
    assert '"<string>", line 1' in said
    assert said.endswith("\nerror: /none/x: No such file or directory\n")


def test_p18_a_message_is_one_line_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it quotes: what the tests of bad input look at is what it says."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    told = "http://me:hush@host/v1?api_key=abcdef\nrefuses sk-very-secret"
    line = f"from compositionality.errors import UserError; raise UserError({told!r})"
    assert outcome(line, capsys) == (2, "error: http://***@host/v1?api_key=***\\nrefuses ***\n")


def test_a_reader_that_stops_reading_is_no_error() -> None:
    """As ``… --help | head -1`` does."""
    command = [sys.executable, "examples/evaluate.py", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


LIKE_NUMBERS = st.from_regex(r"[-+.:]?[0-9a-z]{0,3}[-+.:e]?[0-9]{0,2}", fullmatch=True)


@given(st.lists(st.text(st.characters(categories="LNPS")) | LIKE_NUMBERS, min_size=1))
@example(["1e3", "08", "inf", "1", "~", "null", "on", "2024-01-01", "12:30", "0x1", "a:", "../x", "data/7", "true"])
def test_text_is_written_so_that_it_is_read_as_text(words: list[str]) -> None:
    for text in (as_yaml({"key": words}), f"key: {flow_list(words)}"):
        assert _parsed(text) == {"key": words}
    assert yaml.safe_load(as_yaml({"key": words})) == {"key": words}
