"""What is asked for: a study of a profile, for these replicates, with these arms."""

from dataclasses import dataclass
from functools import cached_property

from compositionality.config.profile import Profile, load_profile
from compositionality.study.model import Replicate, Study, find_arm, load_study, study_folder


@dataclass(frozen=True)
class Request:
    """What is planned: a study of a profile (NAME or NAME/ENGINE), its replicates and arms.

    ``name``: of its folders. ``controls``: arms of the first split of each seed alone. ``base_model``,
    ``chat_template``: that a person gives instead of the profile's. ``report``: with what a report reads;
    ``countdown``: the study of section 4.3 that claims and page read.
    """

    study: str
    profile: str
    replicates: tuple[Replicate, ...]
    arms: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    report: bool = False
    passk: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    countdown: str = ""
    registration: str = ""
    record: bool = False
    one_lane: bool = False
    test_seed: int = 2027
    base_model: str = ""
    chat_template: str = ""
    gpu: bool = False

    @cached_property
    def loaded(self) -> Study:
        """The study."""
        return load_study(self.study)

    @cached_property
    def settings(self) -> Profile:
        """The profile, with what it says of this study."""
        return load_profile(self.profile).of_study(self.loaded.base or self.study)

    @cached_property
    def trained(self) -> list[str]:
        """The arms of every replicate, the longest first. UserError for one that there is not."""
        names = self.arms or self.loaded.trained or self.settings.arms
        return [name for name in names if find_arm(self.loaded, name)]

    @property
    def name(self) -> str:
        """The name of its folders."""
        return self.replicates[0].study.partition("/")[0]

    def root(self, kind: str) -> str:
        """Its folder below data, checkpoints or results."""
        return study_folder(kind, self.name)

    @property
    def section(self) -> str:
        """The folder of its tables below results/STUDY: that of its scripts."""
        return self.loaded.evaluate[0].partition("/")[0]
