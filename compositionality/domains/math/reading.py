"""How long an answer may be, and the marked last line that some data sets ask for in place of a box."""

import re

LONGEST = 400
"""Characters of an answer that is read; golds of the data sets have at most 100."""
_MARKED = re.compile(r"(?:\*\*)?(?:Answer:|####)(?:\*\*)?[ \t]*(\S.*)")


def marked_line(text: str) -> str | None:
    """What the last line gives after ``Answer:`` or ``####``, the forms that DAPO's and GSM8K's prompts ask for."""
    tail = text[-2 * LONGEST :].rstrip()
    found = _MARKED.fullmatch(tail[tail.rfind("\n") + 1 :].strip())
    return found[1].strip().removesuffix("**") if found else None
