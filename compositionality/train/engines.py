"""The two training programs, whichever engine does the work: what the entry points run."""

from omegaconf import OmegaConf

from compositionality.errors import UserError
from compositionality.train import grpo_settings, sft_settings
from compositionality.train.common.ranks import on_ranks
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.sft_settings import SftSettings


def train_grpo(settings: GrpoSettings) -> None:
    """Train ``model.path`` on ``data.train_files``; UserError for settings that this engine cannot have."""
    grpo_settings.check_settings(settings)
    _refuse_verl(settings.engine)
    if settings.dry_run:
        print(OmegaConf.to_yaml(OmegaConf.structured(settings)), end="")
    else:
        on_ranks(settings.run, lambda: _grpo(settings))


def train_sft(settings: SftSettings) -> None:
    """Fine-tune ``model.path`` on ``data.train_file``; UserError for settings that this engine cannot have."""
    sft_settings.check_settings(settings)
    _refuse_verl(settings.engine)
    if settings.dry_run:
        print(OmegaConf.to_yaml(OmegaConf.structured(settings)), end="")
    else:
        on_ranks(settings.run, lambda: _sft(settings))


def _refuse_verl(engine: str) -> None:
    if engine == "verl":
        raise UserError("engine=verl: run examples/train_grpo.py or examples/train_sft.py")


def _grpo(settings: GrpoSettings) -> None:
    from compositionality.train.common.processes import stop_processes
    from compositionality.train.grpo import train

    train(settings, force=settings.force)
    stop_processes()


def _sft(settings: SftSettings) -> None:
    from compositionality.train.common.processes import stop_processes
    from compositionality.train.sft import train

    train(settings, force=settings.force)
    stop_processes()
