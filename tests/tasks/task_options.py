"""Options of the two tasks under which all that a task promises is tried, with the golden digests of their problems."""

from compositionality.tasks.countdown.clean import CountdownOptions
from compositionality.tasks.string.clean import StringOptions

STRING = {
    "plain": StringOptions(levels=(1, 2, 3)),
    "tiny": StringOptions(
        drop=(0, 3), levels=(1, 2), alphabet="abcdefghij" * 4 + "123", input_length=(3, 6), max_length=10,
        frozen_parameters=True, style="compact",
    ),
    "trees": StringOptions(functions="all", levels=(1, 2, 3, 4), shape="tree", show_definitions=True),
    "heldout": StringOptions(functions="heldout", levels=(1, 2, 5)),
    "deep": StringOptions(levels=(8,)),
}  # fmt: skip
COUNTDOWN = {
    "plain": CountdownOptions(levels=(2, 3, 4)),
    "compact": CountdownOptions(levels=(2, 3), numbers=(1, 30), target=(1, 99), style="compact"),
    "minimal": CountdownOptions(levels=(3, 4), whole=False, minimal=True, numbers=(1, 12)),
    "any": CountdownOptions(levels=(3, 4), use="any", operators="+-", numbers=(1, 50), style="compact"),
    "deep": CountdownOptions(levels=(5,)),
}
GOLDEN = {
    ("string", "plain"): "3e4388fff957318f",
    ("string", "tiny"): "15be1337a0d808b1",
    ("string", "trees"): "c8d27f502d406e89",
    ("string", "heldout"): "e493ebba8fbc27f3",
    ("string", "deep"): "78c402c0e29d978e",
    ("countdown", "plain"): "acaac1fce47dd45f",
    ("countdown", "compact"): "a33e7f9c936051a2",
    ("countdown", "minimal"): "d6264de4820585d1",
    ("countdown", "any"): "1a5d9ec6917f59bf",
    ("countdown", "deep"): "dbaada26ed941f1e",
}
