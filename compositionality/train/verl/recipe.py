"""What of verl's configuration the result of an SFT run depends on."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from compositionality.train.run_folder import flatten

NOT_THE_RESULT = (
    "run.",
    "profiler.",
    "model.path",
    "data.train_files",
    "data.val_files",
    "data.num_workers",
    *(f"trainer.{key}" for key in ("default_local_dir", "default_hdfs_dir", "project_name", "experiment_name")),
    *(f"trainer.{key}" for key in ("logger", "save_freq", "test_freq", "max_ckpt_to_keep", "profile_interval")),
    *(f"trainer.{key}" for key in ("resume_mode", "resume_from_path", "device", "nnodes", "n_gpus_per_node")),
)


def result_settings(config: DictConfig) -> dict[str, Any]:
    """The settings that the trained weights depend on, flat (``optim.lr``), without paths and conveniences."""
    flat = flatten(OmegaConf.to_container(config, resolve=True))
    return {key: value for key, value in flat.items() if not key.startswith(NOT_THE_RESULT)}
