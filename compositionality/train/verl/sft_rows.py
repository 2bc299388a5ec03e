"""The rows of SFT for verl, by ``data.custom_cls``: the tokens of the single-file trainer."""

from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor
from torch.utils.data import Dataset

from compositionality.rollout.prompts import chat_row
from compositionality.train.rows import read_messages


class ChatRows(Dataset[dict[str, Tensor]]):  # type: ignore[misc]
    """Rows as verl takes them without padding. Its own class renders each turn alone, which leaves out what a template
    opens in the prompt and makes of earlier turns, and trains on what follows the EOS.
    """

    def __init__(
        self, parquet_files: list[str], tokenizer: Any, config: DictConfig, processor: Any, max_samples: int = -1
    ) -> None:
        del processor
        columns = (config.messages_key, config.prompt_key, config.response_key)
        chats = [chat for path in parquet_files for chat in read_messages(Path(path), tokenizer, columns)]
        self.chats = chats if max_samples < 0 else chats[:max_samples]
        self.tokenizer, self.config = tokenizer, config

    def __len__(self) -> int:
        return len(self.chats)

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        """Return token ids, positions and loss mask of a row, cut to ``max_length`` where ``truncation`` says so."""
        row, limit = chat_row(self.chats[number], self.tokenizer), self.config.max_length
        part = slice(-limit, None) if self.config.truncation == "left" else slice(limit)
        tokens, loss_mask = torch.tensor(row.tokens[part]), torch.tensor(row.loss_mask[part])
        return {"input_ids": tokens, "position_ids": torch.arange(len(tokens)), "loss_mask": loss_mask}
