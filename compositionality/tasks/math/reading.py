"""Where a completion gives its answer: the last box, or a marked last line."""

import re

LONGEST = 400
"""Characters of an answer that is read; golds of the data sets have at most 100."""
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_MARKED = re.compile(r"(?:\*\*)?(?:Answer:|####)(?:\*\*)?[ \t]*(\S.*)")


def thought_after(response: str) -> str:
    """What follows the last ``</think>``; all of it without one."""
    return response[response.rfind("</think>") + len("</think>") :] if "</think>" in response else response


def last_box(text: str) -> str | None:
    """What the last ``\\boxed{…}`` holds, braces matched; None if there is none, or it is never closed."""
    start = next((found.end() for found in reversed(list(_BOX.finditer(text)))), None)
    if start is None:
        return None
    depth = 1
    for place in range(start, min(len(text), start + LONGEST + 1)):
        depth += {"{": 1, "}": -1}.get(text[place], 0) if text[place - 1] != "\\" else 0
        if not depth:
            return text[start:place].strip()
    return None


def has_box(text: str) -> bool:
    """Whether a box is opened at all."""
    return _BOX.search(text) is not None


def marked_line(text: str) -> str | None:
    """What the last line gives after ``Answer:`` or ``####``, the forms that DAPO's and GSM8K's prompts ask for."""
    tail = text[-2 * LONGEST :].rstrip()
    found = _MARKED.fullmatch(tail[tail.rfind("\n") + 1 :].strip())
    return found[1].strip().removesuffix("**") if found else None
