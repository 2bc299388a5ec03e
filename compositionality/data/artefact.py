"""Results that appear whole or not at all, with a manifest of their inputs.

A result is a file or a folder with a manifest (``.NAME.manifest.json`` beside a file, hidden from readers of a whole
folder; ``manifest.json`` inside a folder): the step, its settings, the hash of every input and of every file of the
result, and nothing that depends on the time or the machine. The same step with the same settings and inputs finds the
result and does nothing; any other step refuses to overwrite it unless forced. An input with a manifest is checked.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout
from pydantic import BaseModel, ValidationError

from compositionality.data.git import code_version
from compositionality.errors import UserError, check_can_be_made

MANIFEST, PENDING = "manifest.json", "pending.json"
OURS = {"step", "files", "inputs", "settings"}  # even a damaged manifest of this project has one of these keys
LARGE = 64 << 20  # bytes; the hash of a larger file is cached in this process, by its size and times
NO_FLOCK = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # file systems without flock, as some NFS
UNCHECKED: dict[str, None] = {}  # missing inputs that a dry run of this process could not check, in order
OUTDATED: ContextVar[Set[Path]] = ContextVar("OUTDATED", default=frozenset())  # what a dry run makes anew


class Manifest(BaseModel):
    """The origin of a result. ``inputs`` and ``files`` map names to sha256 hex digests."""

    step: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    files: dict[str, str]
    code: str
    facts: dict[str, Any] = {}


@dataclass(frozen=True)
class Recipe:
    """The recipe of a result: the step's name, its settings (JSON types) and its input files or folders."""

    step: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, Path] = field(default_factory=dict)
    dry: bool = False  # write nothing, and believe the manifest of a large file that was not written after it

    def identity(self) -> tuple[str, str, dict[str, str]]:
        """Return step, settings and input hashes: two results are the same if these are equal."""
        settings = json.dumps(self.settings, sort_keys=True, default=str)
        return self.step, settings, {name: input_hash(path, dry=self.dry) for name, path in self.inputs.items()}


def file_hash(path: Path) -> str:
    status = path.stat()
    digest = _digest if status.st_size >= LARGE else _digest.__wrapped__
    return digest(path.resolve(), (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@cache
def _digest(path: Path, _: tuple[int, ...]) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tree_hash(path: Path) -> str:
    """Return the sha256 of a file, or of the names and contents of a folder's files (its manifest left out)."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    return combined_hash(path, _file_hashes(path))


def input_hash(path: Path, *, dry: bool = False) -> str:
    """Return the ``tree_hash``; if there is a manifest, only of the files it names, checked against it."""
    path = path.resolve()
    if (manifest := read_manifest(path)) is None:
        return tree_hash(path)
    fix = f"make it again, or delete {manifest_path(path)} to use it as it is"
    return combined_hash(path, _checked_hashes(path, manifest, fix, dry=dry))


def _checked_hashes(target: Path, manifest: Manifest, fix: str, *, dry: bool = False) -> dict[str, str]:
    """Return the hashes of the files that the manifest names; UserError, ending with ``fix``, for one that differs."""
    root, made = target if target.is_dir() else target.parent, manifest_path(target).stat().st_mtime_ns
    for name, expected in manifest.files.items():
        if not (path := root / name).is_file() or {"..", "/"} & {*Path(name).parts}:  # publish would copy it
            raise UserError(f"{path}: missing in {root}; {fix}")
        is_read = not dry or path.stat().st_size < LARGE or path.stat().st_mtime_ns > made
        if is_read and file_hash(path) != expected:
            raise UserError(f"{path}: altered or truncated since it was made; {fix}")
    return manifest.files


def combined_hash(path: Path, hashes: Mapping[str, str]) -> str:
    """Return the sha256 of a file or folder whose files have these ``hashes``."""
    if path.is_file():
        return hashes[path.name]
    digest = hashlib.sha256()
    for name, content in sorted(hashes.items()):
        digest.update(f"{name}\t{content}\n".encode())
    return digest.hexdigest()


def config_hash(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def manifest_path(target: Path) -> Path:
    """Return the path of ``target``'s manifest: inside a folder, beside a file."""
    return target / MANIFEST if target.is_dir() else target.with_name(f".{target.name}.{MANIFEST}")


def hidden_sibling(target: Path, ending: str) -> Path:
    """Return ``.NAME.ending`` beside ``target``. UserError where nothing can be beside it: no name, or in a file."""
    check_can_be_made(target)
    return target.with_name(f".{target.name}.{ending}")


def read_manifest(target: Path) -> Manifest | None:
    """Return the manifest of a result, or None if it has none; a foreign manifest.json does not count."""
    path = manifest_path(target)
    if not path.is_file():
        return None
    content = path.read_bytes()
    with contextlib.suppress(ValueError):
        manifest = json.loads(content)
        if isinstance(manifest, dict) and not manifest.keys() & OURS:
            return None
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        raise UserError(f"{path}: damaged manifest; delete it and its result, and run that step again") from error


def verify(target: Path, *, dry: bool = False) -> Manifest:
    """Check each file of ``target`` against its hash and return the manifest. UserError names an altered file."""
    if (manifest := read_manifest(target)) is None:
        fault = "has no manifest" if target.exists() else "does not exist"
        raise UserError(f"{target}: {fault}; run the step that makes it")
    _checked_hashes(target, manifest, "run the step again with --force", dry=dry)
    return manifest


def is_to_be_checked(*inputs: str | Path, dry: bool) -> bool:
    """Return whether to check these inputs: always at a start, in a dry run only if all exist and are not outdated."""
    places, results = [Path(path).expanduser() for path in inputs if dry], OUTDATED.get()
    outdated = {*results, *(folder for result in results for folder in result.parents)}
    missing = [path for path in places if not path.exists() or path in outdated or not results.isdisjoint(path.parents)]
    UNCHECKED.update(dict.fromkeys(map(str, missing)))
    return not missing


def is_done(target: Path, recipe: Recipe, *, force: bool = False) -> bool:
    """Return whether this recipe made ``target``. UserError if it was altered, or, unless ``force``, made otherwise."""
    if not recipe.dry:
        _finish_publishing(target, recipe)
    return check_target(target, recipe, force=force, dry=recipe.dry) is not None


def check_target(target: Path, recipe: Recipe, *, force: bool = False, dry: bool = True) -> Manifest | None:
    """Return the manifest of a result to keep. UserErrors are those of ``is_done``. Writes nothing.

    In a dry run an input may be missing: then the inputs and the result's bytes are not checked.
    """
    if manifest := check_maker(target, recipe.step, recipe.inputs.values(), force=force):
        old, new = manifest.settings, json.loads(json.dumps(recipe.settings, default=str))
        keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        _refuse_other(target, [f"{key}: {old.get(key)!r} then, {new.get(key)!r} now" for key in keys])
        if is_to_be_checked(*recipe.inputs.values(), dry=dry):
            _refuse_other(target, _changed_inputs(manifest.inputs, replace(recipe, dry=dry).identity()[2]))
            verify(target, dry=dry)
    return manifest


def check_maker(target: Path, step: str, inputs: Iterable[Path] = (), *, force: bool = False) -> Manifest | None:
    """Return the manifest of a result to keep, else None. UserError for a foreign file, another step's, a bad place."""
    check_place(target, inputs)
    pending, empty = hidden_sibling(target, PENDING).is_file(), target.is_dir() and not any(target.iterdir())
    if force or empty or pending or not target.exists():
        return None
    if (manifest := read_manifest(target)) is None:
        raise UserError(f"{target}: exists but was not made by this step; move it away or pass --force")
    if manifest.step != step:
        raise UserError(f"{target}: was made by step {manifest.step!r}, not {step!r}; choose another path or --force")
    return manifest


def _refuse_other(target: Path, changed: Sequence[str]) -> None:
    if changed:
        raise UserError(f"{target}: was made from other inputs ({'; '.join(changed[:3])}); pass --force to replace it")


def check_place(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise UserError if ``target`` has no name, is a link, is in a result or an input, or is or contains an input."""
    hidden_sibling(target, MANIFEST)
    if target.is_symlink():
        raise UserError(f"{target}: is a link; give the path that it points to")
    place = target.resolve()
    for path in inputs:
        source = path.resolve()
        if place == source or place in source.parents:
            raise UserError(f"{target}: contains the input {path}; choose another path for the result")
        if source in place.parents:
            raise UserError(f"{target}: is inside the input {path}, which it would change; choose another path")
    for folder in place.parents:
        with contextlib.suppress(OSError, ValidationError):  # ValidationError: another program's manifest
            Manifest.model_validate_json((folder / MANIFEST).read_bytes())
            raise UserError(f"{target}: is inside the result {folder}, which it would change; choose another path")


def make(
    target: Path,
    recipe: Recipe,
    body: Callable[[Path], object],
    *,
    force: bool | Callable[[], bool] = False,
    follows: bool = False,
    wait: float = 0.0,
) -> dict[str, Any] | None:
    """Make ``target`` by this recipe unless it exists: the work of a step. Return its facts, None if it existed.

    ``body`` writes a file or folder at the path it is given; a mapping that it returns is kept as facts. With
    ``follows``, an outdated result of this step (other settings or inputs) is replaced without ``force``, since it can
    always be made again, and nothing is said of one that is up to date. Another process that makes it is waited for
    ``wait`` seconds; a ``force`` that depends on the files is called then. UserErrors are those of ``is_done``.
    """
    check_place(target, recipe.inputs.values())  # first: the lock lies beside the target, which may be in an input
    with exclusive(target, wait):
        forced = force() if callable(force) else force
        if is_done(target, recipe, force=forced or (follows and _is_outdated(target, recipe))):
            if not follows:
                print(f"{target} is already there")
            return None
        facts: dict[str, Any] = {}
        with new_artefact(target, recipe, facts) as partial:
            facts |= figures if isinstance(figures := body(partial), Mapping) else {}
        return facts


def _is_outdated(target: Path, recipe: Recipe) -> bool:
    """Return whether this step made ``target`` from other settings or inputs.

    UserError for a folder with a file outside the manifest, which replacing the folder would delete.
    """
    _finish_publishing(target, recipe)
    manifest = read_manifest(target) if target.exists() else None
    if manifest is None or manifest.step != recipe.step:
        return False
    _, settings, inputs = recipe.identity()
    if (manifest.settings, manifest.inputs) == (json.loads(settings), inputs):
        return False
    for path in target.rglob("*"):  # empty for a file
        name = path.relative_to(target).as_posix()
        if not path.is_dir() and path.name != MANIFEST and name not in manifest.files:
            raise UserError(f"{path}: not a part of this result; move it away, or pass --force to delete it")
    return True


@contextlib.contextmanager
def new_artefact(target: Path, recipe: Recipe, facts: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Yield a path for a file or folder that becomes ``target`` at the end; on an error the old result stays.

    The body may fill ``facts`` with figures to keep in the manifest.
    """
    check_place(target, recipe.inputs.values())
    partial = hidden_sibling(target, "partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    remove(partial)
    identity = recipe.identity()
    try:
        yield partial
        publish(partial, target, identity, dict(facts or {}))
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None and os.strerror(errno.ENOSPC) in str(error):
            error.filename = str(target)  # neither a write nor pyarrow names what it was writing
        remove(partial)
        raise


def publish(partial: Path, target: Path, identity: tuple[str, str, dict[str, str]], facts: Mapping[str, Any]) -> None:
    """Write the manifest of ``partial`` and move it to ``target``."""
    step, inputs, settings = identity[0], identity[2], json.loads(identity[1])
    files = _file_hashes(partial) if partial.is_dir() else {target.name: file_hash(partial)}
    manifest = Manifest(step=step, settings=settings, inputs=inputs, files=files, code=code_version(), facts={**facts})
    old, is_folder = hidden_sibling(target, "old"), partial.is_dir()
    written = partial / MANIFEST if is_folder else hidden_sibling(target, PENDING)  # ignored unless complete
    written.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    for path in (written,) if is_folder else (partial, written):
        _fsync(path)
    remove(old)
    if target.is_dir() or (is_folder and target.exists()):  # a rename does not replace these
        os.replace(target, old)
    os.replace(partial, target)
    if not is_folder:
        os.replace(hidden_sibling(target, PENDING), manifest_path(target))
    remove(old)


def _finish_publishing(target: Path, recipe: Recipe) -> None:
    """Repair after a kill between the two renames of ``publish``: restore the old folder, move a matching manifest."""
    check_place(target, recipe.inputs.values())
    if (old := hidden_sibling(target, "old")).is_dir() and not target.exists():
        os.replace(old, target)
    if not (pending := hidden_sibling(target, PENDING)).is_file():
        return
    with contextlib.suppress(ValidationError):
        manifest = Manifest.model_validate_json(pending.read_bytes())
        if target.is_file() and manifest.files.get(target.name) == file_hash(target):
            os.replace(pending, manifest_path(target))
    pending.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all, even if another process writes it at the same time."""
    partial = hidden_sibling(path, f"{uuid.uuid4().hex}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        _fsync(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def exclusive(target: Path, wait: float = 0.0) -> Iterator[None]:
    """Lock ``target`` for this process. UserError if another process still holds the lock after ``wait`` seconds.

    Without flock the file ``.NAME.owner`` names the process; on the same machine a stale one is taken over.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    path, owner = hidden_sibling(target, "lock"), hidden_sibling(target, "owner")
    busy = f"{target}: another process is writing it; wait for it or choose another path"
    lock: BaseFileLock = FileLock(path, timeout=wait, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        if not path.exists():  # filelock says so of a place that takes no file, too
            path.touch()
        raise UserError(busy) from error
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
        lock = SoftFileLock(owner, timeout=max(wait, 1))  # a dead owner is noticed at the second try
        try:
            lock.acquire()
        except Timeout:
            process = " on ".join(owner.read_text().split()[:2]) if owner.is_file() else "gone by now"
            raise UserError(f"{busy}, or delete {owner} if it is gone (process {process})") from error
    try:
        yield
    finally:
        lock.release()


def _file_hashes(path: Path) -> dict[str, str]:
    """Return hashes by name: of a file, or of each file of a folder except its manifest."""
    if path.is_file():
        return {path.name: file_hash(path)}
    files = (file for file in path.rglob("*") if file.is_file() and file != path / MANIFEST)
    return {file.relative_to(path).as_posix(): file_hash(file) for file in sorted(files)}


def _changed_inputs(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the differences; inputs are also matched by content, since names depend on the list they are in."""
    changed = [f"{name} has changed" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    changed += [f"{name} is new" for name in sorted(new.keys() - old.keys()) if new[name] not in old.values()]
    changed += [f"{name} is left out" for name in sorted(old.keys() - new.keys()) if old[name] not in new.values()]
    return changed or [f"{name} is only in one of the two" for name in sorted(old.keys() ^ new.keys())]


def _fsync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def name_inputs(role: str, paths: Sequence[str | Path]) -> list[str]:
    """Return a name for every input of a list: ``role`` and the shortest unique suffix of its path."""
    parts = [Path(path).absolute().parts for path in paths]
    names = []
    for path in parts:
        ends = (path[-length:] for length in range(1, len(path)))
        unique = (end for end in ends if all(path == other or other[-len(end) :] != end for other in parts))
        names.append(f"{role}/{'/'.join(next(unique, path[1:]))}")
    return names
