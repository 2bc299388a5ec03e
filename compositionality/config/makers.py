"""Find the script of ``bash/`` that makes a missing file or folder, for a hint in error messages."""

import fnmatch
import re
from pathlib import Path

BASH = Path(__file__).parents[2] / "bash"
SECTIONS = {"countdown": "section43", "injection": "behavior_injection", "scaling": "scaling_law"}
"""The scripts' folder by the beginning of a study's name. Other studies are of sections 4.1 and 4.2."""
_OUTPUT = re.compile(r"^OUTPUT=\$\{OUTPUT:-\$(?:DATA|CKPT|RESULTS)/(.+)\}$", re.MULTILINE)
_FILES = re.compile(r'\sfiles="\[(.+?)\]"')
_PLACE = re.compile(r"([\w.-]+)/seed\d+(?:-split\d+)?/(.+)")


def maker(message: str) -> str:
    """Return ``; bash bash/….sh makes it`` for the first missing path in ``message`` that a script makes.

    Empty if there is none, or if the message names a script itself. Of several scripts, prefer the longest match of
    OUTPUT with the path, then the study's own script.
    """
    for path in re.findall(r"[\w.-]*(?:/[\w.-]+)+", message) if "bash bash/" not in message else ():
        match = _PLACE.search(path)
        if not match or Path(path).exists():
            continue
        section, makers = SECTIONS.get(match[1].partition("-")[0], "section41_42"), []
        for script in BASH.glob("*/*.sh"):
            text = script.read_text()
            names = [name for files in _FILES.findall(text) for name in files.split(",")] or [""]
            for output in [f"{place}/{name}" for place in _OUTPUT.findall(text) for name in names]:
                target = output.replace("$OWN", "").rstrip("/*")
                if fnmatch.fnmatch(f"{match[2]}/", f"{target}*/*") or fnmatch.fnmatch(match[2], f"{target}/*"):
                    makers.append((len(target), script.parent.name == section, script.relative_to(BASH).as_posix()))
        if makers:
            return f"; bash bash/{max(makers)[-1]} makes it"
    return ""
