"""Which script of ``bash/`` makes a file or folder that a message calls missing."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

BASH = Path(__file__).parents[2] / "bash"
_OUTPUT = re.compile(r"^OUTPUT=\$\{OUTPUT:-\$(\w+)(?:/(.+))?\}$", re.MULTILINE)
_FILES = re.compile(r'"files=\[(.+?)\]"')
_VARIABLE = re.compile(r"\$(\w+|\{[^{}]*\})")


def maker(message: str) -> str:
    """``; bash bash/….sh makes it`` for the first path in ``message`` that is not there and that a script makes.

    Empty if there is none. Of several scripts the one whose OUTPUT says most of the path, then the one of $SECTION.
    """
    for path in re.findall(r"[\w.-]*(?:/[\w.-]+)+", message):
        making = [
            (len(place.replace("*", "")), script.parent.name == os.environ.get("SECTION"), script)
            for folder, place, script in _outputs()
            if re.match(rf"{re.escape(folder)}.*/{'[^/]*'.join(map(re.escape, place.split('*')))}(/|$)", path)
        ]
        if making and not Path(path).exists() and not Path(path).is_relative_to("bash"):
            return f"; bash {max(making, key=lambda one: one[:2])[-1].relative_to(BASH.parent).as_posix()} makes it"
    return ""


def _outputs() -> Iterator[tuple[str, str, Path]]:
    """(folder, rest with * for variables, path) of the default OUTPUT of every script that has one."""
    for script in sorted(BASH.glob("*/*.sh")):
        text = script.read_text()
        names = ",".join(_FILES.findall(text)).split(",")  # what it makes in that folder; [""]: the folder
        for variable, end in _OUTPUT.findall(text):
            folder = os.environ.get(variable, "")
            place = end.replace("$SECTION", script.parent.name) or folder.rpartition("/")[2]
            for name in names if place else ():
                place_of = _VARIABLE.sub("*", f"{place}/{name}".rstrip("/"))
                yield folder if end else folder.rpartition("/")[0], place_of, script
