"""The string task behind the interface of all tasks; what the audit and the ledger find out about its problems.

The ledger recognises a problem by its expression and input, and its composition by text and by behaviour. A composition
is two or more nested operators; parameters and literals aside, it is known by its text, and with them by its behaviour
on fixed strings. Single functions are no compositions: Stage 1 teaches all of them on purpose. For the audit every row
is evaluated again.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from statistics import fmean, quantiles
from typing import Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.string.clean import SEED_CLASSES, StringGenerator, StringOptions, owner
from compositionality.tasks.string.diagnose import diagnose, read_chain
from compositionality.tasks.string.functions import ALIASES
from compositionality.tasks.string.paper import StringPaperOptions, paper_problems
from compositionality.tasks.string.program import (
    Program,
    another_order,
    is_reducible,
    parse_program,
    real_depths,
    steps_of,
)
from compositionality.tasks.string.reference import read_reference
from compositionality.tasks.string.wording import (
    compact_prompt,
    hide_definitions,
    json_prompt,
    judge_string,
    read_ground_truth,
    write_solution,
)
from compositionality.tasks.task import Behaviours, Column, Identity, Mode, Task
from compositionality.types import Problem

_FUNCTION = re.compile(r"func_\d+")
PROBES = (
    "abcdefghij", "hello", "Queue7", "aabbccddee", "bookkeeper", "zyxwvu", "A1b2C3d4", "racecar", "e", "xq",
    "«k»-«m»", "mississippi9", "GHIJklmno", "tt_uu|v", "oiuae3", "dhbfgcjdface",
)  # fmt: skip
_OUR_WORDS = json_prompt("", "").partition("\n")[0]
_MAIN = re.compile(r"def main_solution\(.*", re.DOTALL)


class StringTask(Task):
    """Nested functions on short strings; the level is how many are nested."""

    name = "string"
    title = "String transformations"
    data_sources = (r"codeio-forward-incomplete-depth\d+", r"string-[a-z_]+-level\d+")
    modes: ClassVar[Mapping[str, Mode]] = {
        "clean": Mode(StringOptions),
        "paper": Mode(StringPaperOptions, uses=("split",)),
    }
    styles = ("json", "compact")
    gold_mark = ":"
    too_few = "ask for fewer rows, longer inputs or more functions"
    seed_classes = SEED_CLASSES
    columns = (
        Column("x matters", lambda level: f"{level['input_matters']:.1%}"),
        Column("no-op", lambda level: f"{level['with_no_op']:.1%}"),
        Column("constant", lambda level: f"{level['with_constant']:.1%}"),
        Column("real depth", lambda level: f"{level['real_depth']:.1%}"),
        Column("reducible", lambda level: f"{level['reducible']:.1%}"),
        Column("other order", lambda level: "–" if level["other_order"] is None else f"{level['other_order']:.1%}"),
        Column("len med/p90/max", lambda level: "{length_median:.0f}/{length_p90:.0f}/{length_max}".format(**level)),
        Column("functions", lambda level: f"{level['functions_mean']:.2f}"),
        Column("balance", lambda level: f"{level['balance']:.2f}"),
    )
    judge = staticmethod(judge_string)
    parse_truth = staticmethod(read_ground_truth)
    hide_definitions = staticmethod(hide_definitions)
    diagnose = staticmethod(diagnose)
    read_chain = staticmethod(read_chain)

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        if isinstance(options, StringPaperOptions):
            raise UserError("mode=paper is one sequence; make its whole file")
        return _generator(options).problem(split, seed, index)

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """Return the problems at ``indices``; those of a level with the same input and answer count as the same."""
        generator = _generator(options)
        items = [generator.item(split, seed, index) for index in indices]
        return [((item.level, item.input, item.output), generator.render(item, seed)) for item in items]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        if isinstance(options, StringPaperOptions):
            return paper_problems(options, split, count)
        return super().problems(options, split, seed, count, workers)

    def gold(self, problem: Problem) -> str:
        """Return the JSON object with the answer, or the trace of the compact style."""
        answer, style = read_ground_truth(problem.ground_truth)
        if style == "json":
            return json.dumps({"output": answer}, ensure_ascii=False)
        return read_reference(problem.ground_truth, problem.prompt).gold_trace()

    def solution(self, problem: Problem, behaviours: Behaviours, seed: int) -> str:
        """Return the compact trace with behaviours injected; in the JSON style the gold answer alone."""
        _, style = read_ground_truth(problem.ground_truth)
        if style == "json":
            return super().solution(problem, behaviours, seed)
        program = read_reference(problem.ground_truth, problem.prompt)
        key = f"string/solution/{seed}/{problem.prompt}".encode()
        return write_solution(program.names, program.gold_trace(), behaviours, key)

    def identity(self, problem: Problem) -> Identity:
        """Return expression and input; the composition's text and its behaviour."""
        program, x, _ = read_row(problem)
        return Identity(f"{program.text} on {x}", *_composition_keys(program))

    def level(self, problem: Problem) -> int:
        return read_row(problem)[0].depth

    def asks_its_truth(self, problem: Problem) -> bool:
        """Render the prompt again; one in the words of others must hold program and input."""
        try:
            truth = json.loads(problem.ground_truth)
            code, x = str(truth["ref_code"]), str(truth["ref_input"]["x"])
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"is no row of the string task ({error})") from error
        if truth.get("style") == "compact":
            free = parse_program(code)
            frozen = replace(free, calls=tuple([call._replace(frozen=True) for call in free.calls]))
            return steps_of(free) is not None and problem.prompt in {
                compact_prompt(chain, x, show_definitions=shown) for chain in (free, frozen) for shown in (False, True)
            }
        whole = json_prompt(code, x)
        if problem.prompt.startswith(_OUR_WORDS):
            return problem.prompt in (whole, hide_definitions(whole))
        main = _MAIN.search(code)
        return main is not None and main[0].strip() in problem.prompt and x in problem.prompt

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Evaluate the problem again, operator by operator. UserError if it is no row of the string task.

        reducible: without some operators the value is the same; other_order: in another order of the functions too
        (None: no chain). real_depth: it is the level; wrong_stream: the input belongs to another split or seed.
        """
        program, x, output = read_row(problem)
        if output is None:
            raise UserError("is no row of the string task (no ref_output)")
        applied = list(program.apply(x))
        depths = real_depths(applied)
        seed = problem.metadata.get("seed")
        value = program.value(x)
        steps = steps_of(program)
        shares = {
            "wrong_gold": value != output,
            "wrong_stream": seed is not None and owner(x) != (problem.metadata.get("split"), seed % SEED_CLASSES),
            "input_named": program.uses_input,
            "input_matters": _input_matters(program),
            "with_no_op": any(step.value in step.strings for step in applied),
            "with_constant": any(depth < 0 for depth in depths),
            "real_depth": (depths[-1] if depths else 0) == problem.level,
            "reducible": is_reducible(program, x),
        }
        other_order = None if steps is None else another_order(steps, x, value)
        return {"shares": shares, "other_order": other_order, "length": len(output), "functions": program.functions}

    def figures(self, facts: Sequence[Any]) -> dict[str, Any]:
        """Return shares of rows, ``other_order`` of ``chains``; ``balance`` is rarest over commonest function."""
        lengths = sorted(fact["length"] for fact in facts)
        deciles = quantiles(lengths, n=10, method="inclusive") if len(lengths) > 1 else lengths * 9
        orders = [fact["other_order"] for fact in facts if fact["other_order"] is not None]
        functions = Counter(name for fact in facts for name in fact["functions"])
        return {
            **super().figures([fact["shares"] for fact in facts]),
            "other_order": fmean(orders) if orders else None,
            "chains": len(orders),
            "length_median": deciles[4],
            "length_p90": deciles[8],
            "length_max": lengths[-1],
            "functions_mean": fmean(len(fact["functions"]) for fact in facts),
            "balance": min(functions.values()) / max(functions.values()) if functions else 0.0,
            "functions": dict(sorted(functions.items(), key=lambda item: int(item[0].removeprefix("func_")))),
        }

    def skills(self, problem: Problem) -> Sequence[str]:
        """Return the distinct functions: the row's own list, else the names in the program (of rows made elsewhere)."""
        named = problem.metadata.get("functions")
        if named is None:  # those in the expression of the gold answer, else of the prompt; definitions stand before it
            code = json.loads(problem.ground_truth).get("ref_code")
            before, main, after = (code if isinstance(code, str) else problem.prompt).partition("def main_solution")
            named = _FUNCTION.findall(after if main else before)
        return tuple(dict.fromkeys(named))

    def reference(self, problem: Problem) -> str | None:
        """Return definitions, input, and the true string after every operator."""
        reference = read_reference(problem.ground_truth, problem.prompt)
        names = dict.fromkeys(step.call.operator for step in reference.steps if step.name)
        sources = "\n\n".join(ALIASES[name].source() for name in names)
        lines = []
        for number, step in enumerate(reference.steps, 1):
            arguments = ", ".join(map(json.dumps, step.strings))
            parameter = "" if step.call.parameter is None else f", {step.call.parameter!r}"
            lines.append(f"{number}. {step.call.operator}({arguments}{parameter}) = {json.dumps(step.value)}")
        head = f"Definitions:\n\n{sources}\n\nInput: {json.dumps(reference.input)}\nTrue steps, in order:\n"
        return head + "\n".join(lines)


TASK = StringTask()


def read_row(problem: Problem) -> tuple[Program, str, str | None]:
    """Return program, input and output (None: not said) of a row. UserError if it is no row of the string task."""
    try:
        truth = json.loads(problem.ground_truth)
        return parse_program(truth["ref_code"]), truth["ref_input"]["x"], truth.get("ref_output")
    except (KeyError, TypeError, ValueError, UserError) as error:
        raise UserError(f"is no row of the string task ({error})") from error


@lru_cache(maxsize=200_000)
def _composition_keys(program: Program) -> tuple[str | None, str | None]:
    """Return the composition's text, without parameters and literals, and fingerprint; None for a single function."""
    if len(program.calls) < 2 or not program.uses_input:
        return None, None
    text = program.fold(
        lambda s: "''" if isinstance(s, str) else "x", lambda call, parts: call._replace(parameter=None).text(parts)
    )
    return text, fingerprint(program.value)


def fingerprint(function: Callable[[str], str]) -> str:
    results = "\x00".join([function(probe) for probe in PROBES])
    return blake2b(results.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=200_000)
def _input_matters(program: Program) -> bool:
    return program.uses_input and len({program.value(probe) for probe in PROBES}) > 1


@lru_cache(maxsize=64)
def _generator(options: StringOptions) -> StringGenerator:
    return StringGenerator(options)
