r"""Train with TRL's GRPO trainer on a problem file, judged by its task. Needs `pip install 'trl>=1.16'`.

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
    """Settings of a run; TRL's other settings are arguments of ``GRPOConfig`` below."""

    model: str  # a model folder or a Hub id
    problems: str  # a problem file (parquet)
    output: str  # a folder for the trained model
    steps: int = 100  # updates
    batch: int = 64  # completions per step and device, a multiple of group
    group: int = 8  # completions per problem
    max_tokens: int = 1024  # per completion
    learning_rate: float = 1e-6
    shape: Shape = Shape.BINARY  # shape of the reward
    workers: int = 2  # judging processes


def train(settings: TrlSettings) -> None:
    """Train the model and save it to ``settings.output``."""
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
        report_to="none",  # or wandb, tensorboard …; TRL's default is every installed tracker
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
