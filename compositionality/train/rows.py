"""The problems of RL as both engines read them: which columns of a file hold what, from the settings."""

from compositionality.data.problems import RowFormat
from compositionality.train.grpo_settings import GrpoSettings


def row_format(settings: GrpoSettings) -> RowFormat:
    """How ``data.train_files`` and ``data.val_files`` are read."""
    return RowFormat(any_source=settings.reward.function is not None)
