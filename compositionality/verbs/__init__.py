"""The command ``compositionality VERB key=value …``: a module here for each verb, whose docstring is its help.

A module has ``VERB``, or a ``main`` of its own where the settings depend on the words of the command.
"""

import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import NoReturn

COMPLETIONS = {
    "bash": "complete -o default -W '{}' compositionality",
    "zsh": "autoload -U +X bashcompinit && bashcompinit && complete -o default -W '{}' compositionality",
}


def main(verb: str = "") -> NoReturn:
    """Run ``verb`` with the words of the command line, or without it the verb that they begin with; then exit.

    A verb may be written with dashes. Exit code 2 after one line for an unknown one.
    """
    first, *words = [verb, *sys.argv[1:]] if verb else sys.argv[1:] or ["--help"]
    phrases, name = verbs(), first.replace("-", "_")
    if name in phrases:
        sys.argv = [name, *words]
        _run(name)
    elif first in ("-h", "--help"):
        print(_usage(phrases))
    elif first == "completion" and words and words[0] in COMPLETIONS:
        print(COMPLETIONS[words[0]].format(" ".join(phrases)))
    else:
        nearest = get_close_matches(name, phrases, 1, cutoff=0)[0]
        print(
            f"error: {first!r} is no verb; the nearest is {nearest}, compositionality --help has all", file=sys.stderr
        )
        sys.exit(2)
    sys.exit()


def verbs() -> dict[str, str]:
    """Return the first line of each verb's help, read from its file: an import of all takes seconds."""
    files = sorted(Path(__file__).parent.glob("[a-z]*.py"))
    return {file.stem: file.read_text(encoding="utf-8").partition("\n")[0].lstrip('r"') for file in files}


def _run(name: str) -> None:
    from compositionality.config.cli import run, with_errors_in_one_line

    module = import_module(f"{__name__}.{name}")
    if hasattr(module, "main"):
        with_errors_in_one_line(module.main)
    schema, step, check, show = module.VERB
    run(schema, step, module.__doc__, show, check)


def _usage(phrases: dict[str, str]) -> str:
    lines = [f"  {name:<20}{phrase}" for name, phrase in phrases.items()]
    return "\n".join(
        [
            "compositionality VERB key=value …",
            "",
            *lines,
            "",
            "compositionality VERB --help lists its keys. Completion of verbs (bash, zsh; in ~/.bashrc or ~/.zshrc):",
            '  eval "$(compositionality completion bash)"',
        ]
    )
