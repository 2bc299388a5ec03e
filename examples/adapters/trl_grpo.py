r"""GRPO with TRL's trainer on a problem file, judged by the problems' own task. Needs `pip install 'trl>=1.16'`.

Reads the model (a folder or a Hub id) and the problem file; writes the trained model to OUTPUT.

    python examples/adapters/trl_grpo.py model=Qwen/Qwen2.5-1.5B-Instruct output=checkpoints/trl \
        problems=data/composition/seed0/string_task/stage2_level2/train.parquet
"""

from dataclasses import dataclass

from compositionality.adapters.trl_reward import reward_function
from compositionality.config.cli import run
from compositionality.errors import installed
from compositionality.reward.shapes import Shape


@dataclass
class TrlSettings:
    """Keys of a run; further ones of TRL are arguments of ``GRPOConfig`` below."""

    model: str  # a model folder or a Hub id
    problems: str  # a problem file (parquet)
    output: str  # a folder for the trained model
    steps: int = 100  # updates
    batch: int = 64  # completions of one step on one device, a multiple of group
    group: int = 8  # completions of a problem
    max_tokens: int = 1024  # of a completion
    learning_rate: float = 1e-6
    shape: Shape = Shape.BINARY  # of the reward
    workers: int = 2  # judging processes


def train(settings: TrlSettings) -> None:
    """Train and save."""
    with installed("trl", "trl>=1.16"):
        from trl import GRPOConfig, GRPOTrainer
    import torch
    from datasets import load_dataset
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(settings.model, padding_side="left")
    config = GRPOConfig(
        output_dir=settings.output,
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch,
        num_generations=settings.group,
        max_completion_length=settings.max_tokens,
        learning_rate=settings.learning_rate,
        bf16=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        remove_unused_columns=False,  # the reward function reads them
        logging_steps=1,
        report_to="none",  # or wandb, tensorboard …: without it TRL takes all that are installed
    )
    trainer = GRPOTrainer(
        model=settings.model,
        reward_funcs=reward_function(settings.shape, end_token_ids=[tokenizer.eos_token_id], workers=settings.workers),
        args=config,
        train_dataset=load_dataset("parquet", data_files=settings.problems, split="train"),
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.save_model(settings.output)


if __name__ == "__main__":
    run(TrlSettings, train, __doc__)
