"""The page's figures of exact probabilities: each model beside the one that it starts from."""

from compositionality.evaluate.gold_tables import hand_over_by_pair, read_exact
from compositionality.report import gold_figures, heat_maps
from compositionality.report.page.figure import WORDS, PageFigure, cell_table, figure_of, styles_of
from compositionality.report.page.inputs import Inputs
from compositionality.report.theme import unique


def gold(inputs: Inputs, name: str) -> PageFigure | None:
    """Return exact probabilities of the held-out problems before and after, or what each role gained."""
    rows = gold_figures.gold_rows(inputs.evaluated).to_dict("records")
    if not rows:
        return None
    chart = gold_figures.FIGURES[name](rows, styles_of(inputs, unique(rows, "model")))
    exact = read_exact(inputs.evaluated, gold_figures.starts_of(inputs.evaluated))
    tables = []
    for function in gold_figures.TABLES[name]:
        frame, said = function(exact), WORDS[function.__name__]
        if len(frame):
            cells = [said["cell"].format(**row) for row in frame.to_dict("records")]
            table = cell_table(said["title"], frame.assign(cell=cells), *said["index"].split())
            tables.append({**table, "note": said["note"], "name": function.__name__, "frame": frame})
    return figure_of(inputs, name, chart, rows, inputs.starting(f"{inputs.own}/"), {}, details=tables)


def hand_over(inputs: Inputs, name: str) -> PageFigure | None:
    """Return the probability that the outer function is applied to what the inner one gave, before and after."""
    table = hand_over_by_pair(read_exact(inputs.evaluated, gold_figures.starts_of(inputs.evaluated)))
    if table.empty:
        return None
    chart = heat_maps.hand_over(table, styles_of(inputs, [*table["start"], *table["model"]]))
    return figure_of(inputs, name, chart, table, inputs.starting(f"{inputs.own}/"), {})


EXACT = {**dict.fromkeys(gold_figures.FIGURES, gold), "hand_over": hand_over}
