"""The command ``compositionality VERB key=value …``, also as ``python -m compositionality``."""

import gc
import os
import signal
import sys
from difflib import get_close_matches
from typing import Any, NoReturn

from compositionality.config.verbs import VERBS, entry_point, function, helps
from compositionality.errors import INTERRUPTED

COMPLETIONS = {
    "bash": "complete -o default -W '{}' compositionality",
    "zsh": "autoload -U +X bashcompinit && bashcompinit && complete -o default -W '{}' compositionality",
}
USAGE = """compositionality VERB key=value …

{}

compositionality VERB --help lists its keys. Completion of verbs (bash, zsh; in ~/.bashrc or ~/.zshrc):
  eval "$(compositionality completion bash)\""""


def main(verb: str = "") -> NoReturn:
    """Run ``verb`` with the arguments of the command line, then exit; without ``verb``, the first argument is the verb.

    A verb may be written with dashes. Exit code 2 after one line for an unknown verb, 130 after Ctrl-C.
    """
    gc.set_threshold(50_000)  # with Python's 700, collecting is a fifth of the import time of torch and transformers
    first, *words = [verb, *sys.argv[1:]] if verb else sys.argv[1:] or ["--help"]
    name = first.replace("-", "_")
    if name in VERBS:
        sys.argv = [name, *words]
        try:
            _run(name)
        except KeyboardInterrupt:  # while packages are imported
            print(INTERRUPTED, file=sys.stderr, flush=True)
            sys.exit(128 + signal.SIGINT)
    elif first in ("-h", "--help"):
        print(USAGE.format("\n".join(f"  {name:<20}{text.splitlines()[0]}" for name, text in helps().items())))
    elif first == "completion" and words and words[0] in COMPLETIONS:
        print(COMPLETIONS[words[0]].format(" ".join(VERBS)))
    else:
        nearest = get_close_matches(name, VERBS, 1, cutoff=0)[0]
        print(f"error: {first!r}: unknown verb; did you mean {nearest}? --help lists all verbs", file=sys.stderr)
        sys.exit(2)
    sys.exit()


def _run(name: str) -> NoReturn:
    from compositionality.config.cli import exit_after, run
    from compositionality.train.log import wandb_is_usable

    if program := VERBS[name].main:
        exit_after(lambda: function(program)(helps()[name]))
    schema, step, check, show = entry_point(name)

    def step_and_send(settings: Any) -> None:
        step(settings)
        if VERBS[name].sent and wandb_is_usable(os.environ):
            function(VERBS[name].sent)(settings)

    run(schema, step_and_send, helps()[name], show, check)


if __name__ == "__main__":
    main()
