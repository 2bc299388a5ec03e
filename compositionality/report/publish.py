"""A model folder, data or a study as a folder with a card for the Hugging Face Hub; sent only where that is asked for.

What goes into the folder is on a list, by the step that made it; the rest is left out and named. What is not ours, was
edited, or holds a secret or a path of this machine is refused.
"""

import base64
import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from glob import escape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data import artefact
from compositionality.data.artefact import Manifest, Recipe
from compositionality.errors import SECRET_VARIABLES, SHORTEST_SECRET, UserError, without_secrets
from compositionality.evaluate.naming import add_run_names, check_name, named_paths
from compositionality.ranges import REQUIRED, NonEmptyStr
from compositionality.report.card import (
    CONFIGURATIONS,
    Link,
    NamedSource,
    Part,
    Split,
    card,
    eval_results,
    evaluation_of,
    study_of,
)
from compositionality.rollout.model_folder import HUB_ID, resolve_model
from compositionality.validation import check_ranges

STEP, CARD = "publish", "README.md"
MODEL, ROWS, STUDY = "model", "rows", "study"
STEPS = {
    "pretrain_tiny": (MODEL, "A language model, pretrained from scratch"),
    **dict.fromkeys(("sft", "train_sft"), (MODEL, "A language model after supervised fine-tuning")),
    **dict.fromkeys(("train_grpo_single", "train_grpo"), (MODEL, "A language model after reinforcement learning")),
    **dict.fromkeys(("create_problems", "filter_problems", "split_chunks"), (ROWS, "problems")),
    **dict.fromkeys(("filter_rollouts", "write_solutions", "merge_data"), (ROWS, "rows for supervised fine-tuning")),
    "collect_rollouts": (ROWS, "judged answers of a model"),
    **dict.fromkeys(("evaluate_accuracy", "passk"), (STUDY, "a table of results")),
    "write_record": (STUDY, "the record of a study"),
    "report": (STUDY, "the page of a study"),
}
"""Steps whose results are published: as what, and in which words."""
FILES = {
    MODEL: (
        *("model*.safetensors", "model.safetensors.index.json", "config.json", "generation_config.json"),
        *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json"),
        *("vocab.json", "merges.txt", "chat_template.jinja"),
    ),
    ROWS: ("*.parquet",),
    STUDY: (
        *("*.parquet", "*.html", "*.csv", "*.png", "*.svg", "finding.txt"),
        *("record.json", "metrics.jsonl", "validation_*.jsonl", "README.md", "command", "versions"),
    ),
}
"""Files that are published of each: no optimizer's state."""
TO_BE_NAMED = {MODEL: r"model", ROWS: r"model|(problems|rollouts|inputs)(/.*)?", STUDY: ""}
"""Inputs that a source has to be given of: models, and what rows are copied from."""
SECRET = re.compile(
    r"(?<![A-Za-z0-9])(hf_[A-Za-z0-9]{30,}|sk-[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{20,}"
    r"|A[KS]IA[A-Z0-9]{16}|wandb_v\d_\w{20,})|BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?i:wandb_?(api)?_?key|aws_secret_access_key)\W{1,4}[A-Za-z0-9/+=]{40}"
)
HOMES = r"/(?:home|root|Users|mnt|media|scratch|workspace|nfs|lustre|gpfs|fsx)/[\w.-]+"
ESCAPED = re.compile(r"\\+[nrtbf]")
"""A line's end or a tab as JSON writes it: the letter would pass for the one before a word."""
PACKED = re.compile(r"H4sI[A-Za-z0-9+/]+=*")
"""Gzip in base64, as a page has it."""


@dataclass
class PublishSettings:
    """Settings of ``publish``."""

    what: list[str] = REQUIRED  # a model folder; or data, records, pages, tables: PATH or CONFIGURATION:PATH
    output: Path = REQUIRED  # folder to make, with its card
    licence: NonEmptyStr = REQUIRED  # as the Hub calls it: apache-2.0, llama3.1, cc-by-4.0 …
    repo: str = ""  # OWNER/NAME on the Hub
    sources: list[str] = field(default_factory=list)  # what it was made from or tested on: PATH, OWNER/NAME[:PATH]
    results: list[str] = field(default_factory=list)  # of a model: NAME:results.parquet of evaluate, one for each seed
    command: str = ""  # what was run, as it was typed
    limits: list[str] = field(default_factory=list)  # sentences for the card
    upload: bool = False  # send the folder to repo; one that is new becomes private
    force: bool = False  # replace a result that was made from something else


def publish(settings: PublishSettings) -> Path:
    """Make the folder ``output`` unless it is there, print its card and files, and send it if ``upload`` says so.

    UserError for what is not published, and for an upload that the Hub refuses.
    """
    parts, sources, output = parts_of(settings), sources_of(settings.sources), settings.output
    write = partial(_write, settings=settings, parts=parts, sources=sources)
    artefact.make(output, _recipe(settings, parts, sources), write, force=settings.force)
    print((output / CARD).read_text(encoding="utf-8"))
    for name in artefact.verify(output).files:
        print(f"{name}: {(output / name).stat().st_size:,} bytes")
    for path in (part.root / name for part in parts for name in part.left_out):
        print(f"left out: {path}")
    if settings.upload:
        _upload(settings, "model" if kind_of(parts[0].made) == MODEL else "dataset")
    else:
        print(f"{output}: nothing was sent; upload=true repo=OWNER/NAME sends these files")
    return output


def check(settings: PublishSettings) -> None:
    """Refuse in a dry run what a start refuses: a place that somebody else uses, and what is published, if there."""
    named = _named(settings.what)
    artefact.check_maker(settings.output, STEP, [path for _, path in named], force=settings.force)
    present = [(name, path) for name, path in named if artefact.is_to_be_checked(path, dry=True)]
    if present == named:
        parts_of(settings)
    else:
        for name, path in present:
            _part(name, path)


def parts_of(settings: PublishSettings) -> list[Part]:
    """Return the results to publish, verified. UserError for one that is not ours, was edited or is of no such step."""
    from huggingface_hub import get_token

    check_ranges(settings)
    if (settings.upload or settings.repo) and not HUB_ID.fullmatch(settings.repo):
        raise UserError(f"repo={settings.repo}: give OWNER/NAME")
    if settings.upload and not get_token():
        raise UserError("upload=true: set HF_TOKEN to a token that may write, or run hf auth login")
    parts = [_part(name, path) for name, path in _named(settings.what)]
    models = [part for part in parts if kind_of(part.made) == MODEL]
    if models and len(parts) > 1:
        raise UserError(f"what: {models[0].path}: a model is published alone; give the rest another output")
    if settings.results and not models:
        raise UserError("results: go with a model; publish tables as what=[…]")
    return parts


def _named(entries: Sequence[str]) -> list[tuple[str, Path]]:
    """Return name (or empty) and path of each PATH or NAME:PATH; several may have the same name."""
    if not entries:
        raise UserError("what: give at least one, as what=[FOLDER_OR_FILE,…]")
    parts = [("", entry) if Path(entry).exists() else entry.rpartition(":")[::2] for entry in entries]
    for name in (name for name, _ in parts if name):
        check_name("what", name)
    return [(name, Path(path)) for name, path in parts]


def _part(name: str, path: Path) -> Part:
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    made = artefact.read_manifest(path)
    if made is None:
        inner = "; of a run give its final/ or best/" if (path / "final").is_dir() else ""
        raise UserError(f"{path}: has no manifest, so it is not a result of ours and is not published{inner}")
    if made.step not in STEPS:
        raise UserError(f"{path}: made by {made.step}, which is not published; give a result of {', '.join(STEPS)}")
    artefact.verify(path)
    kind = kind_of(made)
    present = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]  # none of a file
    files = [file for file in made.files if any(fnmatch(Path(file).name, form) for form in FILES[kind])]
    if kind == MODEL:
        files = [file for file in files if "/" not in file]
    if not files:
        raise UserError(f"{path}: holds none of the files that are published ({', '.join(FILES[kind])})")
    return Part(name, path, made, files, sorted({*present, *made.files} - {*files, artefact.MANIFEST}))


def kind_of(made: Manifest) -> str:
    """Return MODEL, ROWS or STUDY; MODEL for what is a step of ours that is not published."""
    return STEPS.get(made.step, (MODEL,))[0]


# ---- what it was made from


def sources_of(entries: Sequence[str]) -> list[NamedSource]:
    """Return what PATH, OWNER/NAME and OWNER/NAME:PATH stand for. UserError for what is not there."""
    sources = []
    for entry in entries:
        hub, _, place = ("", "", entry) if Path(entry).exists() else entry.rpartition(":")
        if not Path(entry).exists() and HUB_ID.fullmatch(entry):
            hub = entry
        if hub and not HUB_ID.fullmatch(hub):
            raise UserError(f"sources: {entry}: give PATH, OWNER/NAME or OWNER/NAME:PATH")
        path = resolve_model(place) if hub == place else Path(place)
        made, digest = artefact.read_manifest(path), artefact.input_hash(path)
        folder = artefact.read_manifest(path.parent) if made is None and path.is_file() else None
        if folder and digest in folder.files.values():
            made = folder
        name = hub or "/".join(path.absolute().parts[-2:])
        sources.append(NamedSource(name, hub, path, made, {digest, *(made.files.values() if made else ())}))
    return sources


def lineage(parts: Sequence[Part], sources: Sequence[NamedSource]) -> list[Link]:
    """Return the inputs of all parts, and of those the inputs, as far as they are known; each once.

    UserError for one that has to be named and is not, or is not ours.
    """
    links, steps = dict[tuple[str, str], Link](), [part.made for part in parts]
    kinds = set(map(kind_of, steps))
    for made in steps:
        needed = TO_BE_NAMED[kind_of(made)] if kind_of(made) in kinds else ""
        for name, digest in made.inputs.items():
            source = next((source for source in sources if digest in source.digests), None)
            what, must = f"{made.step}: its input {name} (sha256 {digest[:16]})", re.fullmatch(needed, name)
            if must and source is None:
                raise UserError(f"{what} is not named; add it to sources, as PATH, OWNER/NAME or OWNER/NAME:PATH")
            is_published = source and source.made and source.made.step in STEPS
            is_ours = (source and (source.hub or source.made)) if name == "model" else is_published
            if must and source and not is_ours:
                raise UserError(f"{what}, {source.path}, is not a result of ours; of a model give OWNER/NAME:PATH")
            links[made.step, digest] = Link(made.step, name, digest, source)
            if source and source.made and source.made not in steps:
                steps.append(source.made)
    return [*links.values()]


# ---- the folder


def _recipe(settings: PublishSettings, parts: Sequence[Part], sources: Sequence[NamedSource]) -> Recipe:
    results = named_paths("results", add_run_names(settings.results)) if settings.results else {}
    inputs = {f"what/{number}": part.path for number, part in enumerate(parts)}
    inputs |= {f"sources/{number}": source.path for number, source in enumerate(sources)}
    inputs |= {f"results/{name}": Path(path) for name, path in results.items()}
    options = {name: getattr(settings, name) for name in ("licence", "repo", "command", "limits")}
    names = {"configurations": [part.name for part in parts], "hub": [source.hub for source in sources]}
    return Recipe(STEP, {**options, **names}, inputs)


def _write(folder: Path, *, settings: PublishSettings, parts: Sequence[Part], sources: Sequence[NamedSource]) -> None:
    """Write the files, their manifests and the card. UserError for an invalid source or private content."""
    links, (places, splits) = lineage(parts, sources), layout(parts)
    results = evaluation_of(parts[0], settings.results) if settings.results else None
    used = {link.digest for link in links} | set(results[0].files.values() if results else ())
    if strange := [source.path for source in sources if not used & source.digests]:
        raise UserError(f"sources: {strange[0]}: nothing was made from it or tested on it, by its hash; leave it out")
    for place, path in places.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / place)
    manifests = [made for made in (*(part.made for part in parts), *(source.made for source in sources)) if made]
    texts = {f"manifests/{n}-{made.step}.json": made.model_dump_json(indent=1) for n, made in enumerate(manifests)}
    details = {name: getattr(settings, name) for name in ("licence", "command", "limits")}
    words = list(dict.fromkeys(STEPS[part.made.step][1] for part in parts))
    details |= {"title": settings.repo or settings.output.name, "words": words}
    details["model"] = kind_of(parts[0].made) == MODEL
    names, measured = {path: place for place, path in places.items()}, [p for p in parts if kind_of(p.made) == STUDY]
    details["studies"] = [study_of(part, {name: names[part.root / name] for name in part.files}) for part in measured]
    texts[CARD] = card(details, parts, links, splits, results)
    texts |= eval_results(results[0], sources) if results else {}
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text + "\n", encoding="utf-8")
    check_public(folder, [*(part.path for part in parts), *(source.path for source in sources)])


def layout(parts: Sequence[Part]) -> tuple[dict[str, Path], list[Split]]:
    """Return the files by their places, and the splits that those of rows make: named as the file, shards ``train``.

    In a record the completions of each model are a configuration, those to a problem file a split.
    UserError for two of a name, rows of unknown columns, and different columns in a configuration.
    """
    places, splits, columns = dict[str, Path](), dict[tuple[str, str], Split](), dict[str, pa.Schema]()
    for part, name in [(one, name) for one in parts for name in one.files]:
        path, rows = part.root / name, kind_of(part.made) == ROWS
        own = part.name or (part.path.resolve().name if part.path.is_dir() else part.path.stem)
        place, again = f"{own}/{name}" if kind_of(part.made) == STUDY else name, f"what=[NAME:{part.path}]"
        if path.suffix == ".parquet":
            schema = pq.read_schema(path).remove_metadata()
            kind = next((kind for kind, column in CONFIGURATIONS.items() if column in schema.names), "")
            config, stem = part.name or kind, re.sub(r"\W", "_", path.stem)
            split, place = "train" if kind == "rollouts" else stem, f"data/{config}/{stem}.parquet" if rows else place
            if kind == "rollouts" and not rows:  # rollouts/MODEL/FILE/shard-00000.parquet
                config, split = f"{config}-{path.parts[-3]}", re.sub(r"\W", "_", path.parts[-2])
            if not kind or not schema.equals(columns.setdefault(config, schema)):
                raise UserError(f"{path}: has other columns than {config or 'any rows of ours'}; rename it, {again}")
            entry = splits.setdefault((config, split), Split(config, split, part, {}))
            folders = (
                {other.parent for other in entry.files.values()} if kind == "rollouts" and not rows else {path.parent}
            )
            if entry.part is not part or not folders <= {path.parent}:
                raise UserError(f"{path}: {config} has a split {split} already; rename it, {again}")
            entry.files[place] = path
        if place in places:
            raise UserError(f"{path}: another file is {place} already; rename it, {again}")
        places[place] = path
    return places, [*splits.values()]


# ---- what must not be published: secrets, and paths of the machine, in whatever can be read as text


def check_public(folder: Path, inputs: Sequence[Path]) -> None:
    """Raise UserError for a file in ``folder`` that holds a secret, or a path of this machine or of a home.

    Paths of this machine: below the home, the working folder, and where ``inputs`` lie. A message shows no secret.
    """
    own = [value for name, value in os.environ.items() if name.upper().endswith(SECRET_VARIABLES)]
    secrets = [value for value in own if len(value) >= SHORTEST_SECRET]
    here = {Path(*place.resolve().parts[:3]) for place in (Path.home(), Path.cwd(), *inputs)} - {Path("/")}
    places = re.compile(rf"(?<![\w.])({'|'.join([HOMES, *(re.escape(str(path)) for path in sorted(here))])})(?![\w.-])")
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for text in (form for found in texts(file) for form in (found, ESCAPED.sub(" ", found))):
            name = file.relative_to(folder)
            if SECRET.search(text) or any(secret in text for secret in secrets):
                raise UserError(f"{name}: holds what looks like a key or a password; take it out where it comes from")
            if place := places.search(text):
                raise UserError(f"{name}: holds the path {place[1]} of a machine; make it again without")


def texts(file: Path) -> Iterator[str]:
    """Yield what can be read in a file: rows of a table, the header of weights, other files and what they pack."""
    if file.suffix == ".parquet":
        table = pq.ParquetFile(file)
        yield str(table.schema_arrow.metadata)
        for batch in table.iter_batches():
            yield json.dumps(batch.to_pylist(), ensure_ascii=False, default=str)
    elif file.suffix == ".safetensors":
        with file.open("rb") as stream:
            yield stream.read(int.from_bytes(stream.read(8), "little")).decode(errors="replace")
    else:
        text = file.read_text(encoding="utf-8", errors="replace")
        yield text
        for packed in PACKED.findall(text):
            with suppress(OSError, EOFError, ValueError, zlib.error):
                yield gzip.decompress(base64.b64decode(packed)).decode(errors="replace")


# ---- the Hub


def _upload(settings: PublishSettings, repo_type: str) -> None:
    """Send what was made, and nothing that came into the folder later, to the Hub. UserError for what it refuses."""
    import httpx
    from huggingface_hub import HfApi

    api, files = HfApi(), [escape(name) for name in (*artefact.verify(settings.output).files, artefact.MANIFEST)]
    try:
        api.create_repo(settings.repo, repo_type=repo_type, private=True, exist_ok=True)
        api.upload_folder(repo_id=settings.repo, folder_path=settings.output, repo_type=repo_type, allow_patterns=files)
    except (OSError, ValueError, httpx.HTTPError) as error:
        reason = without_secrets(" ".join(str(error).split()))[:200]
        raise UserError(f"{settings.repo}: the Hub did not take it ({reason}); nothing here has changed") from error
    print(f"{settings.output}: sent to https://huggingface.co/{'datasets/' * (repo_type == 'dataset')}{settings.repo}")
