"""Results that appear whole or not at all (P8), and know what they were made from."""

import errno
import fcntl
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from compositionality.data import artefact
from compositionality.data.artefact import (
    Recipe,
    check_maker,
    check_target,
    exclusive,
    file_hash,
    is_done,
    name_inputs,
    new_artefact,
    read_manifest,
    tree_hash,
    verify,
)
from compositionality.errors import UserError, system_error


def make(target: Path, recipe: Recipe, text: str) -> None:
    with new_artefact(target, recipe) as partial:
        partial.write_text(text)


def make_folder(target: Path, recipe: Recipe, **files: str) -> None:
    with new_artefact(target, recipe) as partial:
        partial.mkdir()
        for name, text in files.items():
            (partial / name).write_text(text)


def recipe(tmp_path: Path, **settings: object) -> Recipe:
    source = tmp_path / "source.txt"
    if not source.exists():
        source.write_text("input")
    return Recipe("step", settings, {"source": source})


def test_same_recipe_is_done_and_another_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    assert not is_done(target, recipe(tmp_path, n=1))
    make(target, recipe(tmp_path, n=1), "one")
    assert is_done(target, recipe(tmp_path, n=1))
    with pytest.raises(UserError, match=r"n: 1 then, 2 now.*--force"):
        is_done(target, recipe(tmp_path, n=2))
    assert not is_done(target, recipe(tmp_path, n=2), force=True)
    (tmp_path / "source.txt").write_text("other input")
    now = recipe(tmp_path, n=1)
    for start in (check_target, is_done):  # a dry run refuses what a start does
        with pytest.raises(UserError, match="source has changed"):
            start(target, now)
    (tmp_path / "source.txt").unlink()
    assert check_target(target, now), "an earlier step may make it yet"
    with pytest.raises(UserError, match=r"source.txt: no such file"):
        is_done(target, now)


@pytest.mark.parametrize(
    "damage", [lambda part: part.write_bytes(b"0123456780"), lambda part: os.truncate(part, 5), Path.unlink]
)
def test_p08_altered_file_is_refused_by_name(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    target = tmp_path / "folder"
    make_folder(target, recipe(tmp_path), part="0123456789")
    damage(target / "part")
    with pytest.raises(UserError, match=r"folder/part: "):
        verify(target)


def test_p08_full_disk_keeps_the_old_result(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    make(target, recipe(tmp_path), "good")
    code = textwrap.dedent("""
        import resource, sys
        from pathlib import Path
        from compositionality.data.artefact import Recipe, new_artefact
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        with new_artefact(Path(sys.argv[1]), Recipe("step", {})) as partial:
            partial.write_bytes(bytes(100_000))
    """)
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, check=False)
    assert done.returncode != 0
    assert target.read_text() == "good"
    verify(target)
    assert not list(tmp_path.glob(".*partial*"))


@pytest.mark.parametrize("maker", [make, lambda *place, text: make_folder(*place, a=text)])
def test_p08_a_disk_full_at_the_manifest_keeps_the_old_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: Callable[..., None]
) -> None:
    target = tmp_path / "out"
    maker(target, recipe(tmp_path), text="old")

    def refuse(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(artefact, "_fsync", refuse)
    with pytest.raises(OSError, match="No space left") as caught:
        maker(target, recipe(tmp_path, n=2), text="new")
    assert system_error(caught.value).startswith(f"{target}: No space left on device; free some")
    assert not list(tmp_path.glob(".*partial*"))
    assert is_done(target, recipe(tmp_path))


def die(monkeypatch: pytest.MonkeyPatch, killed_after: int, *places: Path) -> None:
    """Let a process end after so many renames, of those from or to ``places`` if any are given."""
    replace, renames = os.replace, itertools.count()

    def dying_replace(source: Path, destination: Path) -> None:
        if (not places or {source, destination} & {*places}) and next(renames) == killed_after:
            monkeypatch.setattr(artefact, "remove", lambda path: None)  # what is dead clears nothing away
            raise KeyboardInterrupt
        replace(source, destination)

    monkeypatch.setattr(artefact.os, "replace", dying_replace)


@pytest.mark.parametrize("killed_after", range(3))
def test_p07_kill_between_the_renames_of_publishing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: int
) -> None:
    """Whatever rename a kill follows, the next run finds either the old or the new result, intact."""
    target = tmp_path / "out.txt"
    make(target, recipe(tmp_path, n=1), "old")
    die(monkeypatch, killed_after)
    with suppress(KeyboardInterrupt):
        make(target, recipe(tmp_path, n=2), "new")
    monkeypatch.undo()
    expected = ("new", 2) if killed_after else ("old", 1)
    assert is_done(target, recipe(tmp_path, n=expected[1]))
    assert target.read_text() == expected[0]


@pytest.mark.parametrize("killed_after", [0, 1])
def test_p08_a_kill_while_a_folder_is_replaced_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: int
) -> None:
    target = tmp_path / "folder"
    make_folder(target, recipe(tmp_path), a="a")
    die(monkeypatch, killed_after, target)
    with suppress(KeyboardInterrupt):
        make_folder(target, recipe(tmp_path), b="b")
    monkeypatch.undo()
    assert is_done(target, recipe(tmp_path))
    assert sorted(path.name for path in target.iterdir()) == ["a", "manifest.json"]


@pytest.mark.parametrize("killed_after", range(3))
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", ["file", "folder"])
def test_p07_what_follows_its_inputs_does_so_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, n: int, killed_after: int
) -> None:
    """Killed while the result of n=1 becomes that of n=2, then run with either."""
    target = tmp_path / name

    def follow(n: int) -> None:
        def write(partial: Path) -> None:
            if name == "folder":
                partial.mkdir()
            (partial / "text" if name == "folder" else partial).write_text(str(n))

        artefact.make(target, recipe(tmp_path, n=n), write, follows=True)

    follow(1)
    die(monkeypatch, killed_after)
    with suppress(KeyboardInterrupt):
        follow(2)
    monkeypatch.undo()
    follow(n)
    assert verify(target).settings == {"n": n}
    assert (target / "text" if name == "folder" else target).read_text() == str(n)


def test_a_folder_is_replaced_whole_by_a_folder_or_a_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for name in ("a", "b"):
        make_folder(target, recipe(tmp_path), **{name: name})
        assert sorted(path.name for path in target.iterdir()) == [name, "manifest.json"]
    make(target, recipe(tmp_path, n=2), "new")
    assert is_done(target, recipe(tmp_path, n=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.manifest.json", "out", "source.txt"]


def test_tree_hash_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = tree_hash(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    second = tree_hash(tmp_path)
    (tmp_path / "b").write_text("2")
    assert len({first, second, tree_hash(tmp_path)}) == 3


def test_a_dry_run_reads_no_gigabytes_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file of a result is read again if it was written after its manifest, and at a start always."""
    model, target = tmp_path / "model", tmp_path / "out"
    make_folder(model, recipe(tmp_path), weights="w" * 100, config="c")
    made = Recipe("copy", {}, {"model": model})
    artefact.make(target, made, lambda partial: partial.write_text("o" * 100))
    read = list[str]()
    monkeypatch.setattr(artefact, "LARGE", 50)
    monkeypatch.setattr(artefact, "file_hash", lambda path: read.append(path.name) or file_hash(path))
    assert check_target(target, made)
    assert read == ["config"]
    assert is_done(target, made)
    assert {"weights", "out"} <= {*read}
    later = artefact.manifest_path(model).stat().st_mtime + 1
    (model / "weights").write_text("v" * 100)
    os.utime(model / "weights", (later, later))
    with pytest.raises(UserError, match="weights: altered or truncated"):
        check_target(target, made)
    pending = artefact.hidden_sibling(target, artefact.PENDING)
    pending.write_text("of a stopped start")
    assert not is_done(target, Recipe("copy", {}, {"model": model}, dry=True))
    assert pending.exists()


def test_p08_two_at_once_do_not_make_one_result(tmp_path: Path) -> None:
    with exclusive(tmp_path / "out"), pytest.raises(UserError, match="another process is writing it"):
        artefact.make(tmp_path / "out", recipe(tmp_path), lambda partial: partial.write_text("x"))


def test_p18_a_place_that_cannot_be_written_is_no_other_process() -> None:
    """Not even root may make a file there."""
    with pytest.raises(FileNotFoundError, match=r"/proc/self/\.out\.lock"), exclusive(Path("/proc/self/out")):
        pass


def test_a_result_that_several_processes_need_is_waited_for(tmp_path: Path) -> None:
    words = (tmp_path / "out", recipe(tmp_path), lambda partial: partial.write_text("x"))
    with ThreadPoolExecutor(1) as other:
        with exclusive(words[0]):
            made = other.submit(artefact.make, *words, wait=60)
            assert wait([made], timeout=0.3).not_done
        assert made.result() == {}
    assert words[0].read_text() == "x"


@pytest.fixture
def no_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("no_flock")
def test_p18_two_writers_on_a_file_system_without_flock(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            exclusive(tmp_path / "out"),
            pytest.raises(UserError, match=rf"another process .*delete .*\.out\.owner .*process {os.getpid()} on "),
            exclusive(tmp_path / "out"),
        ):
            pass
    assert not (tmp_path / ".out.owner").exists()


@pytest.mark.usefixtures("no_flock")
def test_p07_without_flock_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    code = """
    import errno, fcntl, os, signal, sys
    from pathlib import Path
    def refuse(*_): raise OSError(errno.ENOLCK, "no locks")
    fcntl.flock = refuse
    from compositionality.data.artefact import exclusive
    with exclusive(Path(sys.argv[1])):
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "out")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / ".out.owner").is_file()
    with exclusive(tmp_path / "out"):
        pass


def test_two_processes_may_write_one_text_at_the_same_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As two seeds of a study that are started together write its machine.json; here one within the other."""
    path, fsync = tmp_path / "machine.json", os.fsync

    def written_by_another_first(stream: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        artefact.write_text(path, "theirs")

    monkeypatch.setattr(os, "fsync", written_by_another_first)
    artefact.write_text(path, "ours")
    assert path.read_text() == "ours"
    assert [*tmp_path.iterdir()] == [path]


def test_manifest_holds_no_time_and_no_path(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    make(target, recipe(tmp_path), "one")
    first = artefact.manifest_path(target).read_bytes()
    make(target, recipe(tmp_path), "one")
    assert artefact.manifest_path(target).read_bytes() == first
    assert str(tmp_path).encode() not in first


def test_p21_an_empty_folder_may_become_a_result_and_a_foreign_one_not(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    assert not is_done(target, recipe(tmp_path))
    (target / "notes.txt").write_text("mine")
    assert read_manifest(target / "notes.txt" / "results.parquet") is None  # nothing is in a file
    with pytest.raises(UserError, match="not made by this step"):
        is_done(target, recipe(tmp_path))


@pytest.mark.parametrize("place", ["/", "", "."])
def test_p18_a_place_without_a_name_is_refused(tmp_path: Path, place: str) -> None:
    with (
        pytest.raises(UserError, match=r"not a place for a result|contains the input"),
        new_artefact(Path(place), recipe(tmp_path)),
    ):
        pass


def test_p21_an_input_that_is_not_as_it_was_made_is_refused(tmp_path: Path) -> None:
    made = tmp_path / "made.txt"
    make(made, recipe(tmp_path), "one")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.txt").symlink_to(made)
    onward = Recipe("next", {}, {"made": tmp_path / "elsewhere" / "link.txt"})
    assert not is_done(tmp_path / "next.txt", onward)
    made.write_text("two")
    with pytest.raises(UserError, match=r"made\.txt: altered or truncated .* delete .*\.made\.txt\.manifest\.json"):
        make(tmp_path / "next.txt", onward, "x")
    assert not (tmp_path / "next.txt").exists()
    (tmp_path / ".made.txt.manifest.json").unlink()
    make(tmp_path / "next.txt", onward, "x")


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff\xfe", b""])
def test_p18_a_damaged_manifest_is_one_line(tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "out.txt"
    make(target, recipe(tmp_path), "one")
    (tmp_path / ".out.txt.manifest.json").write_bytes(content)
    with pytest.raises(UserError, match=r"\.out\.txt\.manifest\.json: damaged manifest"):
        is_done(target, recipe(tmp_path))


@pytest.mark.parametrize("name", ["../secret.txt", "{}/secret.txt"])
def test_a_manifest_with_a_file_outside_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Its folder may be downloaded: publish copied the file, and wrote it beside the new folder."""
    folder, secret = tmp_path / "made", tmp_path / "secret.txt"
    make_folder(folder, recipe(tmp_path), weights="w")
    secret.write_text("hidden")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name.format(tmp_path)] = artefact.file_hash(secret)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"secret\.txt: missing in .*made"):
        verify(folder)


def test_a_damaged_pending_manifest_is_dropped(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    make(target, recipe(tmp_path), "one")
    (tmp_path / ".out.txt.pending.json").write_bytes(b"\xff")
    assert is_done(target, recipe(tmp_path))


def test_a_large_file_is_hashed_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefact, "LARGE", 4)
    counted, digest = list[str](), hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *words: counted.append("") or digest(*words))
    large = tmp_path / "large.bin"
    large.write_bytes(b"01234567")
    first = [file_hash(large), file_hash(large)]
    large.write_bytes(b"01234568")
    os.utime(large, ns=(1, 1))  # the clock of files may not have moved on
    assert file_hash(large) != first[0] == first[1]
    assert len(counted) == 2


def test_inputs_are_named_by_the_shortest_end_of_their_path() -> None:
    names = name_inputs("files", ["a/level1/train.parquet", "a/level2/train.parquet", "a/test.parquet"])
    assert names == ["files/level1/train.parquet", "files/level2/train.parquet", "files/test.parquet"]
    assert name_inputs("files", ["elsewhere/level1/train.parquet", "elsewhere/level2/train.parquet"]) == names[:2]
    assert name_inputs("files", ["a/b/x", "c/b/x"]) == ["files/a/b/x", "files/c/b/x"]
    assert name_inputs("files", ["x", "./x", "a/x"])[:2] == [f"files/{Path.cwd().name}/x"] * 2


def test_a_changed_list_of_inputs_is_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    paths = [tmp_path / name / "train.parquet" for name in ("level1", "level2", "level1to2")]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(str(number))

    def recipe(*chosen: Path) -> Recipe:
        return Recipe("step", {}, dict(zip(name_inputs("files", chosen), chosen, strict=True)))

    target = tmp_path / "out"
    make(target, recipe(*paths[:2]), "made")
    with pytest.raises(UserError, match=r"other inputs \(files/level1to2/train.parquet is new\)"):
        is_done(target, recipe(paths[2], *paths[:2]))
    with pytest.raises(UserError, match=r"other inputs \(files/level2/train.parquet is left out\)"):
        is_done(target, recipe(paths[0]))


def test_p21_a_result_may_not_be_hold_or_lie_in_its_input_nor_replace_a_link(tmp_path: Path) -> None:
    source, link = tmp_path / "model", tmp_path / "link"
    source.mkdir()
    (source / "weights").write_text("w")
    link.symlink_to(source)
    recipe = Recipe("step", {}, {"model": source})
    places = {source: "contains the input", tmp_path: "contains the input", source / "out": "is inside the input"}
    for target, said in {**places, link: "link: is a link; give the path"}.items():
        with pytest.raises(UserError, match=said):
            is_done(target, recipe, force=True)
        with pytest.raises(UserError, match=said), new_artefact(target, recipe):
            pass
        with pytest.raises(UserError, match=said):
            artefact.make(target, recipe, lambda path: path.write_text("x"))
    assert (link / "weights").read_text() == "w"
    assert [path.name for path in source.iterdir()] == ["weights"], "no lock, with which a report is not made again"


def test_p21_a_result_may_not_lie_in_another_result(tmp_path: Path) -> None:
    model, foreign = tmp_path / "model", tmp_path / "app"
    make_folder(model, recipe(tmp_path), weights="w")
    for target in (model / "out", model / "deep" / "out.parquet"):
        for check in (partial(is_done, recipe=recipe(tmp_path)), partial(check_maker, step="make")):  # start, dry run
            with pytest.raises(UserError, match=rf"{target}: is inside the result {model}, which it would change"):
                check(target, force=True)
    foreign.mkdir()
    for text in ('{"name": "webapp"}', "[1]", "no JSON", '{"files": []}'):  # of other programs
        (foreign / "manifest.json").write_text(text)
        assert not is_done(foreign / "out", recipe(tmp_path))


def test_files_added_to_an_input_with_a_manifest_do_not_change_it(tmp_path: Path) -> None:
    model = tmp_path / "model"
    make_folder(model, recipe(tmp_path), weights="w")
    onward = Recipe("next", {}, {"model": model})
    before = onward.identity()
    (model / "README.md").write_text("mine")
    assert onward.identity() == before


def test_a_manifest_of_others_is_none(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "webapp"}')
    assert read_manifest(tmp_path) is None
