"""Sentences that say what a claim compares, made from measure, models, level and threshold by rule."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.evaluate.claims.model import Rule
from compositionality.evaluate.table import PAIRED, SOLVED
from compositionality.evaluate.tables import decimals
from compositionality.evaluate.types import ALL_LEVELS, CORRECT, DEEPEST, Metric
from compositionality.report.theme import Styles, group_title
from compositionality.yaml_files import read_yaml_mapping

Row = Mapping[str, Any]
NOUNS: dict[str, dict[str, str]] = read_yaml_mapping(Path(__file__).with_name("measures.yaml"))
COUNTED, QUANTITIES = NOUNS["counted"], NOUNS["quantities"]
OVER = re.compile(r", over (\S+) − (\S+), ")
"""In the short form of a comparison: the pair whose difference is subtracted."""
SAME = ("group", "model", "rule", "threshold", "times", "metric", "measure", "base_measure")
"""Keys that comparisons in one sentence must share."""


def claim_sentence(claim: Row, styles: Styles) -> str:
    """Return one sentence on all comparisons of a claim; its own text where no sentence says them all."""
    rows = claim["comparisons"]
    alike = len({tuple(row.get(key) for key in SAME) for row in rows}) == 1
    levels, bases = (list(dict.fromkeys(row[key] for row in rows)) for key in ("level", "base"))
    pairs = {(row["level"], row["base"]) for row in rows}
    if not alike or len(pairs) != len(levels) * len(bases) or any(OVER.search(row["comparison"]) for row in rows):
        return str(claim["text"])
    return sentence(rows[0], styles, levels, bases)


def sentence(row: Row, styles: Styles, levels: Sequence[int] = (), bases: Sequence[str | None] = ()) -> str:
    """Return what a comparison says; with ``levels`` and ``bases`` what it says of each of them.

    Quantities of fitted laws have their short form.
    """
    if row.get("metric") == Metric.SCALING:
        return str(row["comparison"])
    measure = row.get("measure", CORRECT)
    where = f"On {group_title(row['group'])}{at_levels(levels or [row['level']])}"
    names = [named(styles, base) for base in bases or [row["base"]] if base]
    model, base = named(styles, row["model"]), listed(names)
    if pair := PAIRED.fullmatch(measure):
        first, *others = names
        also = f"; so too with {' and with '.join(others)} in place of {first}" if others else ""
        return f"{where}, {of_problems(row, pair.groups(), model, first)}{also}."
    if over := OVER.search(row["comparison"]):
        other = f"that from {named(styles, over[2])} to {named(styles, over[1])}"
        larger = compared(row, ("larger", "smaller"), f"than {other}", f"as large as {other}")
        return f"{where}, the gain in {noun_of(measure)} from {base} to {model} is {larger}."
    if measure not in COUNTED or row.get("base_measure"):
        return f"{where}, {of_quantity(row, model, base)}."
    if not base:
        return f"{where}, {limit(row)} of the completions of {model} are {noun_of(measure)}."
    noun = noun_of(measure)
    if (times := row.get("times", 1)) != 1:
        return f"{where}, {model} gives {multiplied(row, f'{times:g} times as many {noun} as {base}')}."
    if row["threshold"] < 0 and Rule(row["rule"]) == Rule.ABOVE:
        return f"{where}, {model} is less than {points(row)} behind {base} in {noun}."
    more = f"more {noun}", f"fewer {noun}"
    return f"{where}, {model} gives {compared(row, more, f'than {base}', f'as many {noun} as {base}')}."


def at_levels(levels: Sequence[int]) -> str:
    """Return `` at level 3``, `` at each of levels 2 and 3``, `` at the deepest level``; nothing for all levels."""
    words = {ALL_LEVELS: "all levels together", DEEPEST: "the deepest level"}
    if len(levels) == 1:
        return "" if levels[0] == ALL_LEVELS else f" at {words.get(levels[0], f'level {levels[0]}')}"
    *first, last = (words.get(level, str(level)) for level in levels)
    return f" at each of levels {', '.join(first)} and {last}"


def named(styles: Styles, name: str) -> str:
    """Return a model's title as it stands in a sentence: *the base model*, RL on level 2, “BRIDGE: SFT, RL”."""
    title = styles[name].title
    return f"“{title}”" if re.search("[:,+]", title) else f"the {title}" if title.endswith("model") else title


def listed(names: Sequence[str]) -> str:
    """Return names as a list: ``both A and B``, ``each of A, B and C``."""
    both = "both " if len(names) == 2 else "each of "
    return f"{both}{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def noun_of(measure: str) -> str:
    """Return the words for a measure, a class of failures or a pass@k."""
    form, _, k = measure.partition("@")
    words = COUNTED.get(measure) or QUANTITIES.get(measure) or QUANTITIES.get(f"{form}@K", "").replace("@K", f"@{k}")
    return words or measure.replace("_", " ")


def points(row: Row) -> str:
    """Return the threshold without its sign: ``5 points``; a plain number where the measure is not a share."""
    threshold = abs(row["threshold"])
    return f"{threshold:.3g}" if decimals(row) else f"{100 * threshold:.3g} points"


def limit(row: Row) -> str:
    """Return what is claimed of a share: ``over 5 %``."""
    word = "over" if Rule(row["rule"]) == Rule.ABOVE else "at most"
    return f"{word} {100 * abs(row['threshold']):.3g} %"


def compared(row: Row, more_or_less: tuple[str, str], than: str, as_much: str) -> str:
    """Return ``over 5 points more … than B``, ``no more … than B``, ``as many … as B, within ±5 points``."""
    amount, threshold, (more, less) = points(row), row["threshold"], more_or_less
    above = f"less than {amount} {less}" if threshold < 0 else f"over {amount} {more}" if threshold else more
    at_most = f"at most {amount} {more}" if threshold else f"no {more}"
    words = {
        Rule.ABOVE: f"{above} {than}",
        Rule.AT_MOST: f"{f'at least {amount} {less}' if threshold < 0 else at_most} {than}",
        Rule.WITHIN: f"{as_much}, within ±{amount}",
        Rule.AHEAD: f"{more} {than}" + (f" (as good: within ±{amount})" if threshold else ""),
    }
    return words[Rule(row["rule"])]


def multiplied(row: Row, many: str) -> str:
    """Return a comparison with a multiple of the base's figure; ``many``: that multiple, in words."""
    rule, amount = Rule(row["rule"]), points(row)
    shift = f", {'minus' if row['threshold'] < 0 else 'plus'} {amount}" if row["threshold"] else ""
    ends = {Rule.ABOVE: f"more than {many}{shift}", Rule.AT_MOST: f"at most {many}{shift}"}
    return ends.get(rule, f"{many}, within ±{amount}")


def of_quantity(row: Row, model: str, base: str) -> str:
    """Return a comparison of one number of each model, such as pass@k, or of shares by two different measures."""
    shares = {measure: f"share of {noun}" for measure, noun in COUNTED.items()}
    measure, other = row.get("measure", CORRECT), row.get("base_measure")
    noun = shares.get(measure) or noun_of(measure)
    article = "an" if noun[0] in "aeiou" else "a"
    if not base:
        return f"{model} has {article} {noun} of {limit(row)}"
    those = f"the {shares.get(other) or noun_of(other)} of {base}" if other else f"that of {base}"
    if (times := row.get("times", 1)) != 1:
        return f"the {noun} of {model} is {multiplied(row, f'{times:g} times {those}')}"
    higher = compared(row, ("higher", "lower"), f"than {those}", f"as high as {those}")
    return f"the {noun} of {model} is {higher}"


def of_problems(row: Row, pair: Sequence[str | None], model: str, base: str) -> str:
    """Return a comparison of the problems that a model solves with those that its base does."""
    share, bound, support = pair
    if support:
        solve = {
            "kept": f"{model} and {base} both solve",
            "gained": f"{model} solves, and {base} does not solve,",
            "lost": f"{base} solves, and {model} does not solve,",
        }
        return f"{solve[support]} {limit(row)} of the problems"
    solved, low = f"over {chance(SOLVED)}", f"less than {chance(float(str(bound)))}"
    if share == "new":
        new = f"{model} gives their gold solution {solved}, and {base} gave it {low}"
        return f"{limit(row)} of all problems are new: {new}"
    solved_ones = f"to whose gold solution {model} gives {solved}"
    return f"of the problems {solved_ones}, {limit(row)} are new: {base} gave it {low}"


def chance(probability: float) -> str:
    """Return ``one chance in a million`` for 1e-6."""
    odds = round(1 / probability)
    return f"one chance in {({4: 'four', 10**6: 'a million'}).get(odds) or f'{odds:,}'}"
