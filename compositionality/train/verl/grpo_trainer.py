"""verl's ``main_ppo`` with our trainer: ``python -m compositionality.train.verl.grpo_trainer CONFIG.yaml``.

The configuration is complete and resolved (written by the launcher). Everything is verl's ``run_ppo``; its task
runner, the place that verl leaves to users, imports our trainer before it looks it up by name.
"""

import sys
from pathlib import Path
from typing import Any

import ray
from omegaconf import DictConfig, OmegaConf
from verl.trainer import main_ppo
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config

from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.train.common.run_folder import latest_step
from compositionality.train.verl.grpo import FINISHED
from compositionality.train.verl.launch import report_failure

VERL_TASK_RUNNER: Any = main_ppo.TaskRunnerV1.__ray_metadata__.modified_class


class TaskRunner(VERL_TASK_RUNNER):  # type: ignore[misc]
    """Runs inside Ray, as verl's does."""

    def run(self, config: DictConfig) -> None:
        """Train; a UserError is reported to the launcher in one line."""
        from compositionality.train.verl import trainer  # registers itself

        del trainer
        try:
            super().run(config)
            steps = Path(config.trainer.default_local_dir)
            write_text(steps / FINISHED, str(latest_step(steps)))
        except UserError as error:
            report_failure(str(error))
            raise


def check(config: DictConfig) -> None:
    """verl's own checks of the whole configuration."""
    validate_config(config=config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))


def main() -> None:
    """Train with the configuration file named on the command line."""
    config: Any = OmegaConf.load(sys.argv[1])
    OmegaConf.set_struct(config, True)
    check(config)
    try:
        main_ppo.run_ppo(config, task_runner_class=ray.remote(TaskRunner))
    except (ConnectionError, ValueError) as error:  # Ray: no cluster at that address, or one that is not ours
        if not ray.is_initialized():
            report_failure(" ".join(str(error).split()))
        raise


if __name__ == "__main__":
    main()
