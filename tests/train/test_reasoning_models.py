"""Models whose templates open a thought in the prompt go through SFT, RL, rollouts and export.

With verl: test_sft_real.py, test_cluster_real.py.
"""

from pathlib import Path

import pyarrow as pa
import pytest
from assets import write_strings
from base_models import REASONING, make_reasoning

from compositionality.config.cli import parse
from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import chat_row, prompt_tokens
from compositionality.rollout.settings import CollectSettings
from compositionality.train.engines import train_grpo, train_sft
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.sft_settings import SftSettings

ASKED, RESPONSE = {"role": "user", "content": "1+1?"}, "one and one\n</think>\n\n2"


@pytest.fixture(scope="module", params=REASONING)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/, rows.parquet and problems.parquet."""
    folder = tmp_path_factory.mktemp(request.param)
    make_reasoning(folder / "model", request.param)
    answers = [f"{number} and 1\n</think>\n\n{number + 1}" for number in range(16)]
    write_table(pa.table({"prompt": ["1+1?"] * 16, "response": answers}), folder / "rows.parquet")
    write_strings(folder / "problems.parquet", 16)
    return folder


@pytest.mark.parametrize("response", [RESPONSE, f"<think>\n{RESPONSE}"], ids=["as sampled", "with its own opening"])
def test_the_response_follows_the_prompt_of_a_rollout(made: Path, response: str) -> None:
    tokenizer = load_tokenizer(made / "model")
    row = chat_row([ASKED, {"role": "assistant", "content": response}], tokenizer)  # type: ignore[list-item]
    prompt = prompt_tokens(tokenizer, [ASKED])  # type: ignore[list-item]
    assert tokenizer.decode(prompt).endswith("<think>\n")
    assert row.tokens[: len(prompt)] == prompt
    assert row.loss_mask == [0] * len(prompt) + [1] * (len(row.tokens) - len(prompt))
    assert tokenizer.decode(row.tokens[len(prompt) :]) == RESPONSE + tokenizer.eos_token


def test_a_thought_that_only_the_history_leaves_out_is_trained_on(made: Path) -> None:
    """Earlier templates of these models open no thought in the prompt."""
    tokenizer = load_tokenizer(made / "model")
    tokenizer.chat_template = tokenizer.chat_template.replace("<think>\\n", "")
    turn = {"role": "assistant", "content": f"<think>\n{RESPONSE}"}
    row = chat_row([ASKED, turn], tokenizer)  # type: ignore[list-item]
    assert tokenizer.decode(row.tokens).endswith(turn["content"] + tokenizer.eos_token)
    with pytest.raises(UserError, match="rewrites earlier turns; split the conversation"):
        chat_row([ASKED, turn, ASKED, turn], tokenizer)  # type: ignore[list-item]


@pytest.mark.parametrize("made", ["r1-distill"], indirect=True)
def test_sft_rl_rollouts_and_export_of_the_single_file_trainers(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        f"model.path={made / 'model'}", f"data.train_files=[{made / 'rows.parquet'}]", "data.max_length=64",
        f"trainer.output={tmp_path / 'sft'}", "trainer.batch_rows=8", "trainer.steps=2", "optim.lr=1e-3",
    ]  # fmt: skip
    train_sft(parse(SftSettings, words))
    assert "no data.val_files: no validation loss is reported" in capsys.readouterr().out
    words = [
        f"model.path={tmp_path / 'sft/final'}", f"data.train_files=[{made / 'problems.parquet'}]", "trainer.steps=1",
        f"trainer.output={tmp_path / 'rl'}", "data.max_prompt_tokens=64", "rollout.max_tokens=8",
        "data.prompts_per_step=4", "rollout.n=2", "trainer.eval_every=0",
    ]  # fmt: skip
    train_grpo(parse(GrpoSettings, words))
    final = tmp_path / "rl/final"
    assert load_tokenizer(final).chat_template == load_tokenizer(made / "model").chat_template
    asked = [f"model={final}", f"problems={made / 'problems.parquet'}", f"output={tmp_path / 'rollouts'}"]
    more = ["engine=builtin", "n_samples=2", "max_tokens=8", "max_prompt_tokens=64"]
    folder = collect(parse(CollectSettings, [*asked, *more]))
    assert read_table(folder / "shard-00000.parquet").num_rows == 32
