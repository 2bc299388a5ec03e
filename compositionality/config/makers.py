"""Which script of ``bash/`` makes a file or folder that a message calls missing."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

BASH = Path(__file__).parents[2] / "bash"
_OUTPUT = re.compile(r"^OUTPUT=\$\{OUTPUT:-\$(\w+)(?:/(.+))?\}$", re.MULTILINE)
_VARIABLE = re.compile(r"\$(\w+|\{[^{}]*\})")


def maker(message: str) -> str:
    """``; bash bash/….sh makes it`` for the first path in ``message`` that is not there and that a script makes.

    Empty if there is none. Of several scripts the one whose OUTPUT says most of the path, then the one of $SECTION.
    """
    for path in re.findall(r"[\w.-]*(?:/[\w.-]+)+", message):
        making = [
            (
                len(place.replace("*", "")),
                script.parent.name == os.environ.get("SECTION"),
                script.relative_to(BASH.parent),
            )
            for place, script in _outputs()
            if re.search(rf"/{'[^/]*'.join(map(re.escape, place.split('*')))}(/|$)", path)
        ]
        if making and not Path(path).exists():
            return f"; bash {max(making)[-1].as_posix()} makes it"
    return ""


def _outputs() -> Iterator[tuple[str, Path]]:
    """(end of its default OUTPUT with * for variables, path) of every script that has one."""
    for script in sorted(BASH.glob("*/*.sh")):
        for folder, end in _OUTPUT.findall(script.read_text()):
            place = end.replace("$SECTION", script.parent.name) or ("base" if folder == "BASE_MODEL" else "")
            yield _VARIABLE.sub("*", place), script
