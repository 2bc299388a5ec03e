"""Every data set of reasoning-gym: its own answers score 1, the attack corpus 0; the README has what was found."""

import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from compositionality.domains.reasoning_gym import forms
from compositionality.domains.reasoning_gym import library as drawing
from compositionality.domains.reasoning_gym.forms import is_antiderivative_text, is_polynomial_text
from compositionality.domains.reasoning_gym.library import has_one_answer
from compositionality.errors import UserError
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.tasks import find_task
from compositionality.types import Reason

pytest.importorskip("reasoning_gym", reason="reasoning-gym comes with the full set-up only")

import reasoning_gym_attacks as corpus

README = Path(forms.__file__).parent / "README.md"
SAMPLE = [
    "boxnet", "decimal_arithmetic", "game_of_life_halting", "number_sorting", "spell_backward", "string_insertion",
    "syllogism",
]  # fmt: skip


@pytest.fixture(scope="module")
def ours() -> Iterator[JudgePool]:
    with corpus.our_pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def library() -> Iterator[JudgePool]:
    with corpus.library_pool() as pool:
        yield pool


TABLE = [line for line in README.read_text().splitlines() if line.startswith("| ") and line.count("|") == 7][1:]
NOTHING_FOUND = "| {} | scorer | 1 | 0 | | 0 |"
WRITTEN = {name: NOTHING_FOUND.format(name) for name in corpus.datasets()} | {row.split()[1]: row for row in TABLE}
"""The README's row of each data set; it leaves out those on which nothing was found."""


def test_the_table_has_every_data_set_on_which_something_was_found() -> None:
    assert list(WRITTEN) == corpus.datasets()
    assert [row.split()[1] for row in TABLE] == [
        name for name, row in WRITTEN.items() if row != NOTHING_FOUND.format(name)
    ]
    assert f"On the {len(WRITTEN) - len(TABLE)} data sets that are not in the table" in README.read_text()
    assert set(forms.FORMS) <= {row.split()[1] for row in TABLE}


@pytest.mark.parametrize("dataset", SAMPLE)
def test_p04_attacks_of_a_sample(dataset: str, ours: JudgePool) -> None:
    """Put to our judge alone: the library's scorers hang and die on many."""
    row = corpus.measure(dataset, ours, None)
    assert not row.errors
    found, written = (line.split("|") for line in (row.line(), WRITTEN[dataset]))
    assert [found[cell] for cell in (1, 2, 3, 6)] == [written[cell] for cell in (1, 2, 3, 6)]


@pytest.mark.slow
@pytest.mark.parametrize("dataset", corpus.datasets())
def test_p04_attacks_of_all(dataset: str, ours: JudgePool, library: JudgePool) -> None:
    row = corpus.measure(dataset, ours, library)
    assert not row.errors
    assert row.line() == WRITTEN[dataset]


DRAWN = {"codeio": 40, "list_functions": 40}
"""Problems of data sets of which a part only depends on more than the seed; of the others 3."""


def drawn(order: str) -> dict[str, str]:
    """Problems of all data sets, in the order asked for."""
    wanted = [(name, index) for name in corpus.datasets() for index in range(DRAWN.get(name, 3))]
    options = {name: corpus.ReasoningGymOptions(dataset=name) for name in corpus.datasets()}
    problems = {
        f"{name} {index}": corpus.TASK.problem(options[name], "train", 1, index)
        for name, index in (wanted if order == "forwards" else reversed(wanted))
    }
    return {name: repr(problem) for name, problem in problems.items()}


def test_p01_problems_of_all_data_sets_depend_on_their_seed_alone() -> None:
    """Not on the hash seed of the process, on what it drew before, or on the day."""
    script = "import json, sys, test_reasoning_gym_attacks as tests; print(json.dumps(tests.drawn(sys.argv[1])))"
    folders = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    found = []
    for order, seed in (("forwards", "1"), ("backwards", "2")):
        variables = {**os.environ, **folders, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", script, order]
        found.append(json.loads(subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True).stdout))
    one, other = found
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name] or str(date.today()) in one[name]] == []


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("def main(n):\n    return sorted({n, 1})", True),
        ("class Node:\n    pass\ndef main(n):\n    return {Node(): n}", True),
        ("class Node:\n    pass\ndef main(n):\n    return [node for node in {Node(), Node()}]", False),
        ("class Node:\n    pass\ndef main(n):\n    return list(set(Node() for _ in range(n)))", False),
        ("import datetime\ndef main(n):\n    return str(datetime.datetime.now())", False),
        ("from time import time\ndef main(n):\n    return n", False),
        ("def main(n):\n    return hash(str(n))", False),
    ],
)
def test_p01_programs_whose_result_is_not_the_same_each_time(program: str, told: bool) -> None:
    assert has_one_answer("def other():\n    return 1", program) is told


def detour(gold: str) -> str:
    """The first move, back again, and then the solution."""
    disk, start, end = re.findall("[0-9]+", gold.splitlines()[0])
    there = f"Move disk {disk} from Peg {start} to Peg {end}"
    return f"{there}\nMove disk {disk} from Peg {end} to Peg {start}\n{gold}"


ACCEPTED: dict[str, Callable[[str], str]] = {
    "chain_sum": lambda gold: f"+{int(gold):,}.00",
    "bitwise_arithmetic": lambda gold: gold.upper().replace("X", "x"),
    "number_sorting": lambda gold: gold.replace("'", '"'),
    "cryptarithm": lambda gold: ", ".join(reversed(gold.split(","))),
    "polynomial_multiplication": lambda gold: gold.replace(" ", ""),
    "simple_integration": lambda gold: gold.replace(" + C", " - C + 7"),
    "knights_knaves": lambda gold: gold.removesuffix(".").replace(", and", " and"),
    "tower_of_hanoi": detour,
}


@pytest.mark.parametrize("dataset", ACCEPTED)
def test_right_answers_in_other_forms_are_right(dataset: str, ours: JudgePool) -> None:
    problem = corpus.problems_of(dataset)[0]
    answer = ACCEPTED[dataset](json.loads(problem.ground_truth)["answer"])
    item = JudgeInput(problem.data_source, f"<answer>{answer}</answer>", problem.ground_truth)
    assert ours.judge([item])[0].reason is Reason.CORRECT, answer


def test_p05_a_scorer_that_fails_is_an_error_only_if_it_fails_on_a_readable_answer_too(ours: JudgePool) -> None:
    """The library's scorer raises KeyError for a move off the board, which is the model's doing; a board that is not
    in the row is not."""
    board = {"0.5_0.5": ["box_red"], "0.5_1.5": ["target_red"]}
    metadata = {"source_dataset": "boxnet", "initial_state": board}
    rows = [
        json.dumps({"question": "", "answer": None, "metadata": one})
        for one in (metadata, {**metadata, "initial_state": 0})
    ]
    answer = '<answer>[{"Agent[0.5, 0.5]": "move(box_red, square[1.5, 0.5])"}]</answer>'
    verdicts = ours.judge([JudgeInput("reasoning_gym/boxnet", answer, row) for row in rows])
    assert [verdict.reason for verdict in verdicts] == [Reason.MALFORMED, Reason.ERROR]


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("-3*x**6/10 - 5*x**3/3 + C", True),
        ("3*sin(2*x - 10)**4/4 + C", True),
        ("sqrt(x)*E**(2*x) + x**(3/2)/0.5", True),
        ("(x + 1)**(1/2)", True),
        ("log(x) + pi*x", True),
        ("Integral(x, x)", False),
        ("x.diff", False),
        ("__import__('os')", False),
        ("9**9", False),
        ("(9)**99**99", False),
        ("((x + 1)**99)**99", False),
        ("(x)**(9**9)", False),
        ("x**2**99", False),
        ("x(x)", False),
        ("sin x", False),
        ("exp", False),
        ("9" * 16, False),
        ("y", False),
        ("", False),
        ("٣*x", False),
    ],
)
def test_p16_expressions_that_reach_sympy(text: str, legal: bool) -> None:
    assert is_antiderivative_text(text, "x") is legal


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("3204*z**5 - 7743*z**4 + z", True),
        ("-z", True),
        ("12 * z ** 2 * y", True),
        ("z*(z + 1)", False),
        ("z**9999", False),
        ("z**2**2", False),
        ("2**99*z", False),
        ("w", False),
        ("expand", False),
        ("", False),
        ("3 z", False),
    ],
)
def test_p16_polynomials_that_reach_sympy(text: str, legal: bool) -> None:
    assert is_polynomial_text(text, {"z", "y"}) is legal


def test_p04_a_product_without_variables_is_a_number() -> None:
    assert [is_polynomial_text(text, set()) for text in ("0", "-12", "z", "", "0*z")] == [True, True, *[False] * 3]


def test_p04_a_conclusion_is_one_formula() -> None:
    """The library's parser stops at the end of the first one."""
    entry = {"answer": None, "question": "¬∨∧→↔", "metadata": {"variables": ["P", "Q"]}}
    whole = ("P", "¬P", "¬(P∨Q)", "(P ∨ ¬Q)", "(P→Q)∧P", "P ↔ ¬¬Q")
    assert [one for one in whole if not forms.is_readable("propositional_logic", one, entry)] == []
    pairs = [f"{one}{between}{other}" for one in whole for other in whole for between in ("", " ", "\n")]
    assert [pair for pair in pairs if forms.is_readable("propositional_logic", pair, entry)] == []


def test_negations_are_as_deep_as_brackets() -> None:
    entry = {"answer": None, "question": "¬", "metadata": {"variables": ["P"]}}
    readable = [forms.is_readable("propositional_logic", "¬ " * deep + "P", entry) for deep in (64, 65)]
    assert readable == [True, False]


def test_the_forms_are_linear_in_long_answers() -> None:
    entry = {"answer": "1", "question": "", "metadata": {"variable": "x", "variables": [], "puzzle": {"vertices": []}}}
    for dataset in forms.FORMS:
        for unit in ("1 ", "x", "(", "[1,", "A=1,", '"', "\n"):
            started = time.process_time()
            assert not forms.is_readable(dataset, unit * 500_000, entry)
            forms.is_readable(dataset, unit * 500 + "!", entry)
            assert time.process_time() - started < 2, (dataset, unit)


def test_p18_a_data_set_that_cannot_be_made_says_so() -> None:
    task = find_task("reasoning_gym")
    with pytest.raises(UserError, match="Must specify at least one dataset"):
        task.problem(task.modes["clean"].options(dataset="composite"), "train", 1, 0)


def test_p01_a_draw_that_is_interrupted_leaves_no_answer_and_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawing.entry_text("spell_backward", 2, {})
    with monkeypatch.context() as patch:
        patch.setattr(pickle, "load", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            drawing.entry_text("spell_backward", 1, {})
    assert drawing.entry_text("spell_backward", 2, {}) == text
    process = drawing._drawing_process(os.getpid())
    try:  # its input ends within a draw of hours
        process.communicate(pickle.dumps(("tower_of_hanoi", 1, {"min_disks": 40, "max_disks": 40})), timeout=5)
    finally:
        drawing._drawing_process.cache_clear()
        process.kill()


def test_problems_are_drawn_with_the_packages_of_the_program_that_asks(tmp_path: Path) -> None:
    program = tmp_path / "programs" / "ask.py"
    program.parent.mkdir()
    program.write_text(f"from {drawing.__name__} import entry_text\nprint(entry_text('spell_backward', 2, {{}}))\n")
    (tmp_path / "random.py").write_text("raise SystemExit\n")  # where it is started
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == drawing.entry_text("spell_backward", 2, {}), done.stderr
