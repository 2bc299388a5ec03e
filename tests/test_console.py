"""Tables as a narrow terminal shows them."""

from io import StringIO

from rich.console import Console

from compositionality.console import new_table


def test_a_narrow_table_breaks_words_and_loses_none() -> None:
    table = new_table("correctness", "malformed", "overlong")
    table.add_row("100.0", "27.3", "12,800")
    shown = StringIO()
    Console(file=shown, width=20).print(table)
    letters = "".join(shown.getvalue().replace("─", "").split())
    assert sorted(letters) == sorted("correctnessmalformedoverlong100.027.312,800")
