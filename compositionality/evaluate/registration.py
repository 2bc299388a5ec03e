"""Pre-registration: what a study will decide, in a file that is committed before its first test problem is made.

``config/registrations/NAME.yaml`` names claims, arms, replicates and test seed, with hashes of the claims and of the
recipe. A registered study keeps a copy of both files, its *frozen* registration, beside its results.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from compositionality.data.artefact import Recipe, exclusive, file_hash, manifest_path, new_artefact, verify
from compositionality.data.json_files import check_shape
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import FOLDER as CLAIMS
from compositionality.ranges import NonEmptyStr, OneOf, Seed
from compositionality.validation import validated
from compositionality.yaml_files import named_yaml, read_yaml_mapping, yaml_path

FOLDER = Path(__file__).parents[1] / "config" / "registrations"
STEP = "register_study"
FROZEN, FROZEN_CLAIMS = "registration.yaml", "claims.yaml"
MOST_PRIMARY = 6
MOST_SEED = 10**9
TUNING = range(10, 20)  # seeds for tuning recipes; a registered study must not use them


@dataclass(kw_only=True)
class Registration:
    title: NonEmptyStr
    study: NonEmptyStr  # one of config/study/
    profile: NonEmptyStr
    engine: str = ""  # empty: the profile's
    claims: NonEmptyStr  # file of config/claims without .yaml, or a path
    primary: list[str]  # the main claims of the study
    secondary: list[str] = field(default_factory=list)  # further registered claims; all others are exploratory
    arms: list[str]  # trained in every replicate
    controls: list[str] = field(default_factory=list)  # arms trained only in the first split of each seed
    replicates: dict[int, list[int]]  # seed: its function splits
    test_seed: Seed
    split: Annotated[str, OneOf(("test",))] = "test"
    stopping: Annotated[str, OneOf(("none",))] = "none"  # all replicates are run, whatever they show
    failed: NonEmptyStr  # what counts as a failed replicate, in words
    claims_sha256: str = ""  # of the claims' file; run_study.py register=true writes it and the next two
    recipe_sha256: str = ""  # of the resolved profile, the stages and the arms
    trees: dict[str, str] = field(default_factory=dict)  # git's ids of the packages that compute results
    reuses: dict[str, str] = field(default_factory=dict)  # registrations with the same seeds or splits, each with why


def registration_path(name: str) -> Path:
    """Return the file of a name in ``config/registrations``, or a path. UserError if it does not exist."""
    return named_yaml(FOLDER, "registration", name)


def read_registration(path: Path) -> Registration:
    """Read a file. UserError, naming file and key, for invalid values, and for seeds reserved for tuning."""
    registration = validated(Registration, read_yaml_mapping(path), str(path))
    for fault in _faults(registration):
        raise UserError(f"{path}: {fault}")
    return registration


def _faults(registration: Registration) -> Iterator[str]:
    """Yield faults of values that have the right types."""
    if not 1 <= len(registration.primary) <= MOST_PRIMARY:
        yield f"primary: {len(registration.primary)} claims; one to {MOST_PRIMARY} can be primary"
    for first, second in (("primary", "secondary"), ("arms", "controls")):
        names = Counter([*getattr(registration, first), *getattr(registration, second)])
        for name in (name for name, times in names.items() if times > 1):
            yield f"{first} and {second}: {name} is named twice; name it once"
    if not registration.replicates:
        yield "replicates: none; give SEED: [SPLIT, …]"
    owner: dict[int, int] = {}
    for seed, splits in registration.replicates.items():
        if seed in TUNING:
            yield f"replicates: seed {seed}: seeds {TUNING[0]} to {TUNING[-1]} are reserved for tuning; choose others"
        if not splits or not all(0 <= number < MOST_SEED for number in (seed, *splits)):
            yield f"replicates: {seed}: {splits}: give a seed one or more splits, all from 0 to {MOST_SEED - 1:,}"
        for split in splits:
            if split in owner:
                yield f"replicates: split {split} of seed {seed} is one of seed {owner[split]} too; name each once"
            owner[split] = seed


def check_apart(path: Path, registration: Registration, folder: Path = FOLDER) -> None:
    """Raise UserError if seed, split or test seed (±1) belong to another registration, unless ``reuses`` says why."""
    for file in sorted(folder.glob("*.yaml")):
        registered = read_registration(file)
        if file.stem == path.stem or file.stem in registration.reuses or path.stem in registered.reuses:
            continue
        seeds = registration.replicates.keys() & registered.replicates.keys()
        splits = {*chain(*registration.replicates.values())} & {*chain(*registered.replicates.values())} - {0}
        near = {registration.test_seed} if abs(registration.test_seed - registered.test_seed) <= 1 else set()
        for kind, numbers in (("seed", seeds), ("split", splits), ("test_seed", near)):
            for number in sorted(numbers):
                fix = f"choose another, or say why: reuses: {{{file.stem}: WHY}}"
                raise UserError(f"{path}: {kind} {number}: used by {file.stem}, or next to its own; {fix}")


def claims_path(name: str) -> Path:
    """Return the file of ``claims: name``."""
    return yaml_path(CLAIMS, name)


@dataclass(frozen=True)
class Frozen:
    """The folder with a study's registration as it was when the study began."""

    folder: Path

    @cached_property
    def facts(self) -> dict[str, Any]:
        """``registration``: its name or path; ``sha256`` of its file; the ``commit`` that contains it."""
        manifest = verify(self.folder) if self.folder.exists() else None
        if manifest is None or manifest.step != STEP:
            raise UserError(f"{self.folder}: not a registration of a study; bash/confirmatory.sh makes it")
        shape = dict.fromkeys(("registration", "sha256", "commit"), str)
        check_shape(manifest.settings, shape, manifest_path(self.folder), "restore the folder from a copy")
        return dict(manifest.settings)

    @cached_property
    def registration(self) -> Registration:
        assert self.facts  # verifies the folder
        return read_registration(self.folder / FROZEN)

    @property
    def claims(self) -> Path:
        return self.folder / FROZEN_CLAIMS

    def changed(self) -> list[str]:
        """Return a line for each registered file that has changed since."""
        name = self.facts["registration"]
        files = {registration_path(name): self.folder / FROZEN, claims_path(self.registration.claims): self.claims}
        since = f"changed since results exist under registration {name}"
        return [
            f"{now}: {since}" for now, then in files.items() if not now.is_file() or file_hash(now) != file_hash(then)
        ]


def freeze(name: str, commit: str, folder: Path) -> Frozen:
    """Copy the registration ``name`` and its claims to ``folder``; existing copies must be the same.

    No ``artefact.make``: its inputs may have changed since, and what then is to be said is what changed.
    """
    path, frozen = registration_path(name), Frozen(folder)
    with exclusive(folder, wait=60):  # seconds; replicates may start at the same time
        if folder.exists():
            if frozen.facts["registration"] != name:
                raise UserError(
                    f"{folder.parent}: has results of registration {frozen.facts['registration']}, not {name}"
                )
            for line in frozen.changed():
                raise UserError(f"{line}; restore it, or register another study")
            return frozen
        facts = {"registration": name, "sha256": file_hash(path), "commit": commit}
        recipe = Recipe(STEP, facts, {FROZEN: path, FROZEN_CLAIMS: claims_path(read_registration(path).claims)})
        with new_artefact(folder, recipe) as partial:
            partial.mkdir()
            for file, source in recipe.inputs.items():
                (partial / file).write_bytes(source.read_bytes())
    return frozen
