"""GRPO steps by TRL's trainer on the problems of a file; run as a program, it prints seconds and lengths per step."""

import json
import sys
import time
from pathlib import Path

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from compositionality.adapters.trl_reward import reward_function
from compositionality.data.parquet import read_table


class Watch(TrainerCallback):
    """Time from the end of one step to the end of the next, and the mean length of the answers."""

    def __init__(self):
        self.last = time.monotonic()

    def on_log(self, args, state, control, logs=None, **_):
        if state.is_world_process_zero and logs and "completions/mean_length" in logs:
            now = time.monotonic()
            print(json.dumps({"seconds": now - self.last, "length": logs["completions/mean_length"]}), flush=True)
            self.last = now


def main(model, problems, output, steps, prompts, group, tokens, processes):
    torch.set_num_threads(2 // int(processes))
    rows = read_table(Path(problems)).to_pylist()
    data = [{name: row[name] for name in ("prompt", "data_source", "reward_model")} for row in rows]
    answers = int(prompts) * int(group) // int(processes)
    config = GRPOConfig(
        output_dir=output, max_steps=int(steps), per_device_train_batch_size=answers,
        num_generations=int(group), max_completion_length=int(tokens), temperature=1.0, top_p=1.0, top_k=0, beta=0.0,
        learning_rate=3e-4, lr_scheduler_type="constant", max_grad_norm=1.0, logging_steps=1, save_strategy="no",
        report_to=[], use_cpu=True, bf16=False, gradient_checkpointing=False, remove_unused_columns=False,
        disable_tqdm=True, dataloader_num_workers=0,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        reward_funcs=reward_function(),
        args=config,
        train_dataset=Dataset.from_list(data),
        processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
        callbacks=[Watch()],
    )
    trainer.train()


if __name__ == "__main__":
    main(*sys.argv[1:])
