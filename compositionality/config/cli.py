"""The frame of every entry point: reads the settings into a typed object; bad input is one line and exit code 2.

Settings come from five sources, each of which overrides those before: the dataclass's defaults; ``profile=NAME`` (the
profile's settings of this entry point, see config/profile.py); ``step=SECTION/STEP`` (its settings for one script of
``bash/`` or one arm of a study); for RL ``algorithm=NAME`` (a file of config/algorithm); ``key=value`` on the command
line, with the value in YAML's flow style (``3``, ``null``, ``[a, b]``, ``{a: 1}``); paths and texts need no quotes.
"""

import fnmatch
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from traceback import format_exception
from types import UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml  # type: ignore[import-untyped]

from compositionality.config.profile import (
    Layer,
    algorithm_layer,
    expand_files,
    layers_of,
    load_profile,
    merge,
    missing_keys,
    use_device,
    with_key,
)
from compositionality.data.artefact import UNCHECKED
from compositionality.errors import INTERRUPTED, UserError, system_error, without_secrets
from compositionality.ranges import REQUIRED
from compositionality.train.run_folder import flatten
from compositionality.validation import kind_of, phrases, range_of, typed_text, unknown_setting, validated
from compositionality.yaml_files import Loader, flow_list

Settings = TypeVar("Settings")
ALGORITHM = "algorithm"
"""The key that names a file of config/algorithm."""
SWITCHES = {f"--{name.replace('_', '-')}": f"{name}=true" for name in ("force", "check", "post_hoc")}
TEXTS = (str, Path)
BASH = Path(__file__).parents[2] / "bash"
SECTIONS = {"countdown": "section43", "injection": "behavior_injection", "scaling": "scaling_law"}
"""The scripts' folder by the beginning of a study's name. Other studies are of sections 4.1 and 4.2."""
_OUTPUT = re.compile(r"^OUTPUT=\$\{OUTPUT:-\$(?:DATA|CKPT|RESULTS)/(.+)\}$", re.MULTILINE)
_FILES = re.compile(r'\sfiles="\[(.+?)\]"')
_PLACE = re.compile(r"([\w.-]+)/seed\d+(?:-split\d+)?/(.+)")


def run(
    schema: type[Settings],
    step: Callable[[Settings], object],
    doc: str,
    show: Callable[[Settings], str] | None = None,
    check: Callable[[Settings], object] | None = None,
) -> NoReturn:
    """Run ``step`` with settings read from the command line (see above), then exit.

    ``--force`` stands for ``force=true`` and ``--check`` for ``check=true``; ``--cfg`` prints the settings with their
    sources (or the text of ``show``, unless empty) and stops; ``--help`` lists them. ``--dry-run`` calls
    only ``check``, with which ``step`` begins: it has the errors of a real start, except for inputs that do not exist
    yet. A step with a setting ``dry_run`` is called with it.
    """
    arguments = [SWITCHES.get(word, word) for word in sys.argv[1:]]
    if {"-h", "--help"} & set(arguments):
        exit_after(lambda: print(help_text(schema, doc)))

    def body() -> None:
        words = [word for word in arguments if word not in ("--cfg", "--dry-run")]
        keys = {entry.name for entry in fields(schema)}  # type: ignore[arg-type]
        overrides, layers = split_layers(schema, words, getattr(schema, "entry_point", Path(sys.argv[0]).stem))
        profile = next((word[8:] for word in reversed(words) if word.startswith("profile=")), "")
        if profile and "profile" not in keys:
            use_device(load_profile(profile))
            os.environ["PROFILE"] = profile  # a tag of the run in wandb
        dry = "--dry-run" in arguments
        if dry and "dry_run" in keys:
            overrides.append("dry_run=true")
        settings = parse(schema, overrides, layers)
        if "--cfg" in arguments:
            print(without_secrets((show(settings) if show else "") or show_sources(settings, overrides, layers)))
        elif not dry or "dry_run" in keys:
            step(settings)
        elif check is not None:
            check(settings)
        if dry and UNCHECKED:
            print(f"not checked, as these inputs are missing or outdated: {', '.join(UNCHECKED)}", file=sys.stderr)

    exit_after(body)


def exit_after(body: Callable[[], object]) -> NoReturn:
    """Run ``body`` and exit: 0, 2 after one line on stderr (bad input, an OSError, no memory), or 130 after Ctrl-C.

    With HYDRA_FULL_ERROR=1, as of verl's and Hydra's programs, the traceback stands before the line.
    """
    code, message, is_first = 0, "", os.environ.get("RANK", "0") == "0"  # only one of several processes prints it
    try:
        body()
        sys.stdout.flush()  # raises BrokenPipeError here, not at the interpreter's exit
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
        message = INTERRUPTED if is_first else ""
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    except (UserError, OSError, MemoryError) as error:
        code, is_own = UserError.exit_code, not isinstance(error, UserError)  # of this process, which prints it
        line = str(error) if isinstance(error, UserError) else system_error(error)
        text = escape_controls(without_secrets(line))
        message = f"error: {text}{'' if is_own else maker(text)}" if is_first or is_own else ""
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            message = without_secrets("".join(format_exception(error))) + message
    except RuntimeError as error:
        if "Symlink loop" not in str(error):  # of Path.resolve, which from Python 3.13 on raises an OSError
            raise
        code, message = UserError.exit_code, f"error: {escape_controls(str(error))}; give another path"
    if message:
        print(message, file=sys.stderr, flush=True)
    gc.freeze()  # otherwise the interpreter's exit visits all imported objects, for one or two seconds
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        os._exit(code)  # a thread of gloo that wakes up in the middle of Python's clean-up would abort the process
    sys.exit(code)


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


def escape_controls(text: str) -> str:
    """Escape line breaks and other control characters: ``text`` may quote a path or a server."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def parse(schema: type[Settings], overrides: Sequence[str], layers: Sequence[Layer] = ()) -> Settings:
    """Return settings of type ``schema``: its defaults, then ``layers``, then ``overrides``, each ``key=value``.

    A field of type ``dict`` takes any key below it. UserError for an unknown key, a bad or a missing value, a value out
    of its type's range.
    """
    values = _given(schema, overrides, layers)
    if missing := missing_keys(values):
        raise UserError(f"no value for {missing}; give it as KEY=VALUE")
    return validated(schema, values)


def _given(schema: type[Any], overrides: Sequence[str], layers: Sequence[Layer]) -> dict[str, Any]:
    """Return the values of ``parse`` before the settings settle one by another, as ``auto`` by what else is given."""
    defaults = _defaults(schema)  # not from an instance: its __post_init__ may change values
    values = {key: asdict(value) if is_dataclass(value) else value for key, value in defaults.items()}  # type: ignore[arg-type]
    for layer in layers:
        file, _, section = layer.source.partition(": ")
        validated(schema, layer.values, file, f"{section}." if section else "")
        values = merge(values, layer.values)
    for word in overrides:
        values = with_key(values, *_read_word(schema, word))
    return values


def _read_word(schema: type[Any], word: str) -> tuple[str, Any]:
    """Return key and value of ``key=value``. UserError for an unknown key, or a value that is not YAML."""
    key, equals, text = word.partition("=")
    plain = re.sub("^(--|[+~]+)|@.*", "", key)
    if key.startswith("--"):
        plain = plain.replace("-", "_")
    kind = kind_of(schema, plain)
    if kind is None:
        from compositionality.train.names import answer

        hint = answer(schema, plain)
        if not equals and not hint:
            sweep = "sweeps are not supported; " if word in ("-m", "--multirun") else ""
            raise UserError(f"{word}: not a setting; {sweep}give KEY=VALUE, --help lists the keys")
        raise UserError(f"{plain}: {hint or unknown_setting(schema, plain)}")
    if re.match(r"\+\+?verl\.|~verl\.", key):  # Hydra's signs, for verl's configuration: add, add or set, delete
        sign, _, verl_key = key.rpartition("verl.")
        if sign == "~" and equals:
            raise UserError(f"{word}: deletes a key; give {key}, without a value")
        key = plain = f"verl.{sign}{verl_key}"
        text, equals = text or "null", "="
    if key.startswith("--"):
        raise UserError(f"{word}: keys have no dashes; give {plain}=VALUE")
    if key != plain:
        raise UserError(f"{word}: Hydra's signs +, ~ and @ are not supported; give {plain}=VALUE")
    if not equals:
        raise UserError(f"{word}: no value; give it as {key}=VALUE")
    if (kind is dict or is_dataclass(kind)) and "." not in key and not text.startswith("{"):
        raise UserError(f"{word}: holds several keys; give {key}.KEY=VALUE")
    if kind is Path and not text:
        raise UserError(f"{key}: is empty; give a path")
    takes_texts = get_origin(kind) is list and get_args(kind)[0] in TEXTS
    if takes_texts and not text:
        return key, []
    if text != "null" and (kind in TEXTS or (takes_texts and not text.startswith("["))):
        if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
            text = _read_value(word, text, yaml.BaseLoader)
        return key, [text] if takes_texts else text
    if not text:
        return key, text
    return key, _read_value(word, text, yaml.BaseLoader if takes_texts and text != "null" else Loader)


def _read_value(word: str, text: str, loader: Any) -> Any:
    try:
        return yaml.load(text, loader)
    except yaml.YAMLError as error:
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise UserError(f'{word}: {problem}; quote texts with special characters of YAML: key=["a, b",c]') from error


def help_text(schema: type[Any], doc: str) -> str:
    """Return the entry point's help, then its keys (also of nested dataclasses) with type, default and description.

    Keys with a prefix, as ``model.path``, stand below the first line of their dataclass.
    The description of a key is its field's metadata ``help``, or the comment after the field.
    """
    rows = list(_help_rows(schema, _defaults(schema), ""))
    width = max(len(key) for key, _, _ in rows)
    titles = {
        name: str(value.__doc__).partition("\n")[0] for name, value in _defaults(schema).items() if is_dataclass(value)
    }
    lines = list[str]()
    for section, keys in groupby(rows, lambda row: row[0].rpartition(".")[0].partition(".")[0]):
        lines += ["", f"{section}: {titles[section]}"] if section else [""] if lines else []
        lines += [f"  {key:<{width}}  {kind}{'  # ' + phrase if phrase else ''}" for key, kind, phrase in keys]
    if sys.stdout.isatty():
        columns = get_terminal_size().columns
        lines = [fill(line, columns, subsequent_indent=" " * min(width + 4, columns // 3)) for line in lines]
    return "\n".join([doc.strip(), "", "Settings (key=value):", *lines])


def _help_rows(schema: type[Any], values: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield key, type with its default, and description of every setting."""
    comments, kinds = phrases(schema), get_type_hints(schema, include_extras=True)
    for entry in fields(schema):
        value, key = values[entry.name], prefix + entry.name
        if is_dataclass(value) and not isinstance(value, type):
            yield from _help_rows(type(value), vars(value), f"{key}.")
        else:
            default = "required" if str(value) == REQUIRED else f"default {typed_text(value) or 'empty'}"
            limits = range_of(kinds[entry.name]).removeprefix("be ").replace("not be", "not")
            kind = _type_name(get_type_hints(schema)[entry.name])
            yield key, ", ".join(filter(None, (kind, limits, default))), comments.get(entry.name, "")


def _type_name(kind: Any) -> str:
    """Return the name of a type for ``--help``: ``int | null``, ``int | all``."""
    if get_origin(kind) is Literal:
        return str(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return " | ".join("null" if part is type(None) else _type_name(part) for part in get_args(kind))
    return kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)


def _defaults(schema: type[Any]) -> dict[str, Any]:
    return {
        entry.name: entry.default if entry.default_factory is MISSING else entry.default_factory()
        for entry in fields(schema)
    }


def split_layers(schema: type[Any], arguments: Sequence[str], entry_point: str) -> tuple[list[str], list[Layer]]:
    """Return the overrides, and the layers of ``profile=``, ``step=`` (the last of several wins) and ``algorithm=``.

    ``KEY=FOLDER/@NAME`` stands for the problem files that the profile lists as NAME.
    """
    keys = {entry.name for entry in fields(schema)}
    names = [*({"profile", "step"} - keys), *({ALGORITHM} & keys)]
    named: dict[str, list[str]] = {name: [] for name in ("profile", "step", ALGORITHM)}
    overrides = []
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name in names and not value.startswith("{"):
            named[name].append(value)
        else:
            overrides.append(argument)
    profile, steps = next(reversed(named["profile"]), ""), named["step"]
    if steps and not profile and "profile" not in keys:
        raise UserError(f"step={steps[0]}: give profile=NAME too; it has the settings of the step")
    layers = layers_of(profile, entry_point, steps) if profile else []
    if profile and any("/@" in word for word in overrides):
        loaded = load_profile(profile)
        overrides = [expand_files(loaded, word) for word in overrides]
    return overrides, layers + [algorithm_layer(name) for name in named[ALGORITHM][-1:] if name]


def show_sources(settings: object, overrides: Sequence[str], layers: Sequence[Layer]) -> str:
    """Return the settings in the form of the command line, one key per line, each with a comment on its source.

    A value that ``__post_init__`` changed has the given one in the comment: ``# auto, default``.
    """
    sources = {key: layer.source for layer in layers for key in flatten(layer.values)}
    sources |= {word.partition("=")[0].lstrip("+"): "command line" for word in overrides}
    lines, entered = [], flatten(_given(type(settings), overrides, layers))
    for key, value in flatten(asdict(settings)).items():  # type: ignore[call-overload]
        names = [key[: match.start()] for match in re.finditer(r"\.|$", key)]  # a, a.b, a.b.c: all may be given
        source = next((sources[name] for name in reversed(names) if name in sources), "default")
        text = flow_list(map(str, value)) if isinstance(value, list) else typed_text(value)
        if isinstance(value, str | int | float) and not _is_same(value, before := entered.get(key, value)):
            source = f"{typed_text(before)}, {source}"
        lines.append(f"{f'{key}={text}':<48}  # {source}")
    return "\n".join(lines)


def _is_same(value: str | float, given: Any) -> bool:
    """Return whether a value is what was given, but perhaps for its type."""
    try:
        return str(value) == str(given) or float(value) == float(given)
    except (TypeError, ValueError):
        return False
