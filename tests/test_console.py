"""Tables as a narrow terminal shows them."""

from io import StringIO

from rich.console import Console

from compositionality.console import new_table


def test_a_table_breaks_and_loses_no_word_at_any_width() -> None:
    """Narrower columns, then a line for each row; test_preflight.py has one of several rows."""
    table = new_table("correctness", "mean tokens", "95 % interval", title="what")
    table.add_row("100.0", "12,800", "[27.3,\n31.0]")
    wanted = ["what", "correctness", "mean", "tokens", "95", "%", "interval", "100.0", "12,800", "[27.3,", "31.0]"]
    for width in (*range(12, 60), 20):
        shown = StringIO()
        Console(file=shown, width=width).print(table)
        words = shown.getvalue().replace("─", "").split()
        assert sorted(word.rstrip(",") for word in words) == sorted(word.rstrip(",") for word in wanted), width
        assert ("─" in shown.getvalue()) == (width >= 31), width  # a table as soon as its words fit
        assert max(map(len, shown.getvalue().splitlines())) <= width
