"""Answers that solve nothing, for every data set of reasoning-gym, put to its own scorer and to our judge.

``python tests/domains/reasoning_gym_attacks.py [NAME …]`` prints the table of the README of that task for all data sets
or some. Each answer is judged in the processes of the judge pool.
"""

import json
import os
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import reasoning_gym  # noqa: F401 - in the library's judging process before its first answer, whose time is short

from compositionality.domains.reasoning_gym import TASK, task
from compositionality.domains.reasoning_gym.forms import ANY, FORMS
from compositionality.domains.reasoning_gym.task import ReasoningGymOptions, known_answer
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.types import Problem, Reason, Verdict

MARK = Path(tempfile.gettempdir()) / f"reasoning_gym_attacks-{os.getpid()}"
PROBLEMS = 2
NOT_ATTACKED = {"countdown": "judged by our own task", "composite": "needs `datasets`, a list that no key can give"}
HUGE = re.compile(r"[0-9)]\*\*|e9{9}")
"""In answers whose evaluation no alarm ends: they are scored in a process that may die of it."""
WORDS = "Yes No True False Pass Peng Chi on off 0 1 2 3 infeasible magenta red Monday A B C"
CODE = f"__import__('pathlib').Path({str(MARK)!r}).touch()"

FIXED = {
    "spaces": "   ",
    "None": "None",
    "empty list": "[]",
    "empty object": "{}",
    "empty text": '""',
    "nested lists": "[[[[]]]]",
    "list of objects": '[{"a": 1}]',
    "null": "null",
    "true": "true",
    "nan": "nan",
    "complex nan": "nan+nanj",
    "inf": "inf",
    "1e999": "1e999",
    "huge exponent": "1e999999999",
    "5,000 digits": "9" * 5000,
    "power tower": "9**9**9**9",
    "code": CODE,
    "code in a list": f"[{CODE}]",
    "lambda": "(lambda: 0)()",
    "dunder": "().__class__.__bases__",
    "10,000 (": "(" * 10_000,
    "10,000 [": "[" * 10_000,
    "10,000 []": "[" * 10_000 + "]" * 10_000,
    "1 MB of x": "x" * 1_000_000,
    "1 MB of 1": "1" * 1_000_000,
    "1 MB of {": "{" * 1_000_000,
    "1 MB of numbers": "1 " * 500_000,
    "words of many options": WORDS,
    "NUL": "\x00",
    "lone surrogate": "\ud800",
    "prose": "I do not know the answer to that.",
    "an apology": "sorry",
    "a letter": "q",
    "eval of a name": "E",
}


@dataclass(frozen=True, slots=True)
class Attack:
    """A whole response, and what it tries."""

    name: str
    response: str


def attacks(problem: Problem) -> Iterator[Attack]:
    """The attacks on one problem, those made of its right answer and those of its data set included."""
    entry = json.loads(problem.ground_truth)
    gold, question = known_answer(entry), entry["question"]
    answers = FIXED | {"the question": question, "the prompt": problem.prompt, "the question twice": question * 2}
    answers["its words"] = ", ".join(dict.fromkeys(re.findall(r"\w+", question)))
    if gold:
        answers |= _from_gold(gold)
        wrong = f"<answer>{_first_changed(gold) or 'q'}</answer>"
        yield Attack("gold without tags", f"The answer is {gold}")
        yield Attack("gold not closed", f"<answer>{gold}")
        yield Attack("gold before another", f"<answer>{gold}</answer> {wrong}")
    answers |= _of_dataset(entry, gold or "")
    for name, answer in answers.items():
        if not gold or " ".join(answer.split()).lower() != " ".join(gold.split()).lower():
            yield Attack(name, f"<answer>{answer}</answer>")
    yield Attack("no answer", "")
    yield Attack("empty tags again", "<answer>" * 10_000)


def _first_changed(gold: str) -> str | None:
    """The gold answer with its first digit changed, or its first letter if it has none."""
    place = re.search("[0-9]", gold) or re.search("[A-Za-z]", gold)
    if place is None:
        return None
    old = place[0]
    new = str((int(old) + 3) % 10) if old.isdigit() else chr((ord(old) - 60) % 26 + 97)
    return gold[: place.start()] + new + gold[place.end() :]


def _from_gold(gold: str) -> dict[str, str]:
    changed = _first_changed(gold) or f"{gold}q"
    made = {
        "one character changed": changed,
        "gold and a letter": f"{gold}q",
        "gold in prose": f"The answer is {gold}, I think.",
        "gold in long text": "bla " * 200 + gold + " bla" * 200,
        "gold and a remark": f"{gold} # or {changed}",
        "gold or wrong": f"{gold} or {changed}",
        "wrong, gold": f"{changed}, {gold}",
        "gold, wrong": f"{gold}, {changed}",
        "gold in a list": f"[{gold}, {changed}]",
        "gold and wrong as JSON": json.dumps([gold, changed]),
        "gold as an object": json.dumps({"answer": gold}),
        "gold as characters": str(list(gold)),
        "gold twice": f"{gold}\n{gold}",
        "gold as code": f"str({gold!r})",
        "gold and a line of words": f"{gold}\nThat is all.",
        "unicode digits": gold.translate({ord(str(digit)): chr(0x660 + digit) for digit in range(10)}),
    }
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", gold) and float(gold):
        number = float(gold)
        made |= {"100 x": f"{number * 100:g}", "0.01 x": f"{number / 100:.10f}", "minus": f"{-number:.10g}"}
        made |= {"10 % more": f"{number * 1.1:.6f}", "0.5 more": f"{number + 0.5:.10f}"}
    return made


def _of_dataset(entry: dict[str, Any], gold: str) -> dict[str, str]:
    """What fools the scorers of single data sets, by their source."""
    metadata = entry["metadata"]
    match metadata["source_dataset"]:
        case "puzzle24":
            return {"other numbers": "6*4*1*1", "a fraction above": "97/4 + 1 - 1 + 0*1", "nine": "3*8*1*1"}
        case "simple_integration" | "intermediate_integration":
            variable, integrand = metadata["variable"], metadata["integrand"]
            made = {"asks sympy": f"Integral({integrand}, {variable})", "asks sympy now": f"integrate({integrand})"}
            return made | {"deep power": f"((({variable} + 1)**99)**99)**99", "number power": "(9)**99**(99)"}
        case "polynomial_multiplication":
            factors = metadata["polynomial_expr"]
            return {"the product as asked": factors, "asks sympy": f"expand({factors})"}
        case "propositional_logic":
            premises = metadata["premises"]
            made = {"a premise": premises[0], "all premises": " ∧ ".join(f"({one})" for one in premises)}
            return made | {"tautology": "P ∨ ¬P", "lower case": "p ∨ ¬p", "deep": "¬" * 1500 + "P"}
        case "boxnet":
            return {"plan for nobody": '[{"Agent[9, 9]": "wait"}]', "moves the target": _target_plan(metadata)}
        case "number_sorting" if gold:
            near = [f"{float(one) + 0.4:.3f}" for one in json.loads(gold.replace("'", '"'))]
            return {"all a bit more": str(near)}
        case "decimal_arithmetic":
            return {"0.0009 more": str(float(gold) + 0.0009)}
        case "pool_matrix":
            rows = [" ".join(f"{float(one) * 1.009:.4f}" for one in row.split()) for row in gold.split("\n")]
            return {} if set(gold) <= set("0 \n") else {"all 0.9 % more": "\n".join(rows)}
        case "letter_jumble" | "spell_backward" | "figlet_font" | "emoji_mystery" | "sentence_reordering":
            return {
                "gold and words": f"{gold} and more words",
                "gold and letters": f"{gold}zzz",
                "10 letters": gold[:10],
            }
        case "game_of_life":
            wider = json.loads(gold)
            return {"a larger grid": json.dumps([[*row, 7] for row in wider] + [[7]]), "booleans": _booleans(gold)}
        case "codeio":
            twice = re.sub(r"(\"\w+\": )", r'\1"another", \1', gold, count=1)
            return {"booleans": _booleans(gold), "an object": '{"answer": ' + gold + "}", "a key twice": twice}
        case "coin_flip":
            return {"zero": "0", "a small number": "0.00001"}
        case "knights_knaves":
            hedged = re.sub(r"(\w+)([,.])", r"\1 angel devil knight knave\2", gold)
            return {"both roles": hedged, "in doubt": f"I doubt that {gold}"}
        case "time_intervals":
            return {"more parts": f"{gold}:59", "60 seconds": gold.replace(":00", ":60")}
        case "tower_of_hanoi":
            return {
                "moves among words": "\n".join(f"Oh, {line} now" for line in gold.splitlines()),
                "one move": _line(gold),
            }
        case "jugs":
            return {"moves with words": gold.replace('", ', ' please", '), "one move": '["fill A"]'}
        case "rush_hour":
            walk = " ".join(f"{car}{sign}5" for _ in range(60) for sign in "+-" for car in "BCDEFGHIJKLMA")
            return {"every car everywhere": walk, "through the cars": "A+9", "a million steps": "A+9999999"}
        case "rubiks_cube":
            return {"a million turns": "R9999999", "nonsense moves": "Q W E", "one turn": "R"}
        case "advanced_geometry":
            return {"and a third": f"{gold.strip(')')}, 99)", "no degrees": "0"}
        case "prime_factorization":
            return {"the number": str(metadata["number"]), "ones": f"{gold} × 1", "no number": "two × three"}
        case "fraction_simplification":
            own = f"{metadata['numerator']}/{metadata['denominator']}"
            return {
                "not simplified": own,
                "gold and another": rf"{gold} \frac{{1}}{{2}}",
                "only above": own.split("/")[0],
            }
        case "graph_color":
            return {"all one color": json.dumps({str(one): 1 for one in metadata["puzzle"]["vertices"]})}
        case "cryptarithm":
            return {"letters twice": f"{gold},{gold}", "all one": re.sub("[0-9]", "1", gold)}
    return {}


def _booleans(gold: str) -> str:
    return re.sub(r"\b1\b", "true", re.sub(r"\b0\b", "false", gold))


def _line(text: str) -> str:
    return text.splitlines()[0] if text else "Move disk 1 from Peg 1 to Peg 2"


def _target_plan(metadata: dict[str, Any]) -> str:
    """Moves the targets to their boxes, along the rows and then the columns, and matches them there."""
    squares = metadata["initial_state"]
    place = {item: square for square, items in squares.items() for item in items}
    plan = []
    for target in [item for item in place if item.startswith("target_")]:
        color = target.removeprefix("target_")
        goal = [float(part) for part in place[f"box_{color}"].split("_")]
        here = [float(part) for part in place[target].split("_")]
        for axis in (0, 1):
            while here[axis] != goal[axis]:
                after = list(here)
                after[axis] += 1 if goal[axis] > here[axis] else -1
                plan.append({f"Agent{here}": f"move({target}, square{after})"})
                here = after
        plan.append({f"Agent{here}": f"move(box_{color}, {target})"})
    return json.dumps(plan)


def library_judge(data_source: str, solution_str: str, ground_truth: str, extra_info: Any) -> float:
    """The library's own scorer on the same answer, with nothing of ours in front of it."""
    entry = json.loads(ground_truth)
    before, closed, _ = solution_str.rpartition("</answer>")
    _, opened, answer = before.rpartition("<answer>")
    if not (closed and opened):
        return 0.0
    task.SECONDS = 1.0
    score = partial(task.library_score, entry["metadata"]["source_dataset"], answer.strip(), entry)
    return min(1.0, apart(score) if HUGE.search(answer) else score())


def apart(score: Callable[[], float]) -> float:
    """The score by a fork of this process, which costs a restart nothing. ValueError if it did not come to one."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))  # what its alarm does not reach
        try:
            os.write(write, repr(score()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        text = said.read()
    os.waitpid(child, 0)
    return float(text)


@dataclass(frozen=True, slots=True)
class Row:
    """What was found on one data set; names of attacks. ``part``: the most that the library pays below 1."""

    dataset: str
    attacks: int
    gold: str
    library: tuple[str, ...]
    part: float
    runs_code: bool
    ours: tuple[str, ...]
    errors: tuple[str, ...]

    def line(self) -> str:
        """The row of the table."""
        runs = "yes" if self.runs_code else ""
        cells = (self.dataset, judged_by(self.dataset), self.gold, _names(self.library), runs, _names(self.ours))
        return f"| {' | '.join(cells)} |".replace("  ", " ")


def _names(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {', '.join(names[:4])}{', …' if len(names) > 4 else ''}" if names else "0"


def judged_by(dataset: str) -> str:
    """What stands before the scorer and behind it."""
    form = FORMS.get(dataset, ANY)
    parts = ["form" if form.text or form.before else "", "scorer", "check" if form.also else ""]
    return " + ".join(part for part in parts if part)


HEADER = (
    "| data set | judged by | gold | the library's scorer pays for | runs text | this judge pays for |\n"
    "|---|---|---|---|---|---|"
)


def problems_of(dataset: str) -> list[Problem]:
    options = ReasoningGymOptions(dataset=dataset)
    return [TASK.problem(options, "train", 1, index) for index in range(PROBLEMS)]


def measure(dataset: str, ours: JudgePool, library: JudgePool | None) -> Row:
    """Put all attacks on the first problems of a data set to both judges, or to ours alone."""
    problems = problems_of(dataset)
    known = [problem for problem in problems if known_answer(json.loads(problem.ground_truth)) is not None]
    gold = ours.judge([JudgeInput(one.data_source, TASK.gold(one), one.ground_truth) for one in known])
    tries = [(problem, attack) for problem in problems for attack in attacks(problem)]
    items = [JudgeInput(problem.data_source, attack.response, problem.ground_truth) for problem, attack in tries]
    MARK.unlink(missing_ok=True)
    theirs = library.judge(items) if library else []
    ran = MARK.exists()
    MARK.unlink(missing_ok=True)
    verdicts = ours.judge(items)
    if MARK.exists():
        raise AssertionError(f"{dataset}: our judge ran the text of an answer")

    def named(found: list[Verdict], reason: Reason) -> tuple[str, ...]:
        names = {attack.name for (_, attack), one in zip(tries, found, strict=False) if one.reason is reason}
        return tuple(name for name in dict.fromkeys(attack.name for _, attack in tries) if name in names)

    right = "none" if not known else "1" if all(one.score == 1 for one in gold) else "not 1"
    part = max((one.score for one in theirs if one.score < 1), default=0.0)
    paid, errors = named(verdicts, Reason.CORRECT), named(verdicts, Reason.ERROR)
    return Row(dataset, len(tries), right, named(theirs, Reason.CORRECT), part, ran, paid, errors)


def datasets() -> list[str]:
    """The data sets of the library that this task judges and can make."""
    from reasoning_gym.factory import DATASETS

    return sorted(set(DATASETS) - set(NOT_ATTACKED))


def our_pool() -> JudgePool:
    return JudgePool(max_error_rate=1.0)


def library_pool() -> JudgePool:
    """The library's scorers, in a process of their own."""
    return JudgePool(1, 10.0, 1.0, function=f"{__file__}:library_judge")


def main(names: list[str]) -> None:
    with our_pool() as ours, library_pool() as library:
        print(HEADER)
        rows = []
        for name in names or datasets():
            rows.append(measure(name, ours, library))
            print(rows[-1].line(), flush=True)
    fooled = sum(bool(row.library) for row in rows)
    print(
        f"\n{sum(row.attacks for row in rows):,} answers on {len(rows)} data sets; the library pays in full on {fooled}"
    )
    print("ours pays on:", ", ".join(row.dataset for row in rows if row.ours) or "none")
    print("the library pays a part of 1:", ", ".join(f"{row.dataset} {row.part:.2f}" for row in rows if row.part > 0))
    print("the judge fails on:", "; ".join(f"{row.dataset}: {row.errors}" for row in rows if row.errors) or "none")


if __name__ == "__main__":
    main(sys.argv[1:])
