"""Run verl's ``main_ppo`` with our trainer: ``python -m compositionality.train.verl.grpo_trainer CONFIG.yaml``.

The configuration is complete and resolved (written by the launcher). Everything is verl's ``run_ppo``; its task
runner, the place that verl leaves to users, imports our trainer before it looks it up by name.
"""

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import ray
from omegaconf import DictConfig, OmegaConf
from verl.trainer import main_ppo

from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.rollout import cluster
from compositionality.train.run_folder import FINISHED, latest_step
from compositionality.train.verl.launch import end_driver, report_failure
from compositionality.train.verl.preflight import check_grpo_as_verl_does

NODE_ERRORS = ("ActorDied", "ActorUnavailable", "NodeDied", "WorkerCrashed", "OwnerDied", "FailedResponsesError")
"""Ray's errors of a run that has lost a node."""
VERL_TASK_RUNNER: Any = main_ppo.TaskRunnerV1.__ray_metadata__.modified_class


class TaskRunner(VERL_TASK_RUNNER):  # type: ignore[misc]
    """Runs inside Ray, as verl's does, on any node; it is the process that logs."""

    variables: ClassVar[dict[str, str]] = {}  # travels with the class, so that a key is in no file and no log

    def run(self, config: DictConfig) -> None:
        from compositionality.train.verl import trainer  # registers itself

        del trainer
        os.environ.update(self.variables)
        try:
            super().run(config)
            steps = Path(config.trainer.default_local_dir)
            write_text(steps / FINISHED, str(latest_step(steps)))
        except UserError as error:
            report_failure(str(error))
            raise


def main() -> None:
    config: Any = OmegaConf.load(sys.argv[1])
    OmegaConf.set_struct(config, True)
    check_grpo_as_verl_does(config)
    TaskRunner.variables = cluster.tracker_variables(os.environ)
    watch = cluster.NodeWatch(end_driver) if config.run.ray_address else None
    try:
        main_ppo.run_ppo(config, task_runner_class=ray.remote(TaskRunner))
    except (ConnectionError, ValueError) as error:  # Ray: no cluster at that address, or one that is not ours
        if not ray.is_initialized():
            report_failure(" ".join(str(error).split()))
        raise
    except ray.exceptions.RayError as error:
        if watch and any(name in repr(type(error)) + str(error) for name in NODE_ERRORS):
            watch.look(cluster.LEFT_SECONDS)
        raise


if __name__ == "__main__":
    main()
