"""Which script of ``bash/`` makes a file or folder that a message calls missing."""

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

BASH = Path(__file__).parents[2] / "bash"
SECTIONS = {"countdown": "section43", "injection": "behavior_injection", "scaling": "scaling_law"}
"""By how the name of a study begins: where its own scripts are. Others are of sections 4.1 and 4.2."""
_OUTPUT = re.compile(r"^OUTPUT=\$\{OUTPUT:-\$(?:DATA|CKPT|RESULTS)/(.+)\}$", re.MULTILINE)
_FILES = re.compile(r'\sfiles="\[(.+?)\]"')
_PLACE = re.compile(r"([\w.-]+)/seed\d+(?:-split\d+)?/(.+)")


def maker(message: str) -> str:
    """Return ``; bash bash/….sh makes it`` for the first path in ``message`` that is missing and that a script makes.

    Empty if there is none, and of a message that names one itself. Of several scripts the one whose OUTPUT says most of
    the path, then the study's own.
    """
    for path in re.findall(r"[\w.-]*(?:/[\w.-]+)+", message) if "bash bash/" not in message else ():
        match = _PLACE.search(path)
        if not match or Path(path).exists():
            continue
        own = SECTIONS.get(match[1].partition("-")[0], "section41_42")
        making = [
            (len(place), script.parent.name == own, script.as_posix())
            for place, script in _outputs()
            if fnmatch.fnmatch(f"{match[2]}/", f"{place}*/*") or fnmatch.fnmatch(match[2], f"{place}/*")
        ]
        if making:
            return f"; bash {Path(max(making)[-1]).relative_to(BASH.parent).as_posix()} makes it"
    return ""


def _outputs() -> Iterator[tuple[str, Path]]:
    """Yield (what it makes below the folders of a run, path) of every script that has an OUTPUT."""
    for script in sorted(BASH.glob("*/*.sh")):
        names = [name for match in _FILES.findall(script.read_text()) for name in match.split(",")] or [""]
        for place in _OUTPUT.findall(script.read_text()):
            yield from ((f"{place}/{name}".replace("$OWN", "").rstrip("/*"), script) for name in names)
