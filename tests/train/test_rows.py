"""Rows of users in their own columns, with the chat template and without, asked by both engines."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from assets import write_strings
from base_models import LLAMA, REASONING, make_reasoning
from user_rows import KEYS, ROWS, inputs, make, text, words

from compositionality.config.cli import parse
from compositionality.data.artefact import verify
from compositionality.data.problems import read_problems
from compositionality.data.row_format import RowFormat
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import prompt_tokens
from compositionality.rollout.settings import CollectSettings
from compositionality.train.chat_template import ChatTemplateSettings, set_chat_template
from compositionality.train.engines import settle_cluster, train_grpo
from compositionality.train.engines import train_on_rank as train
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.metrics import read_metrics
from compositionality.train.rows import read_grpo_inputs
from compositionality.train.verl.prompts import PromptStream, files_for_verl, write_rows

PLAIN = (*(f"data.{key.partition('=')[0]}" for key in KEYS), "data.apply_chat_template")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("base"))


def test_without_the_chat_template_a_prompt_is_what_the_tokenizer_makes_of_its_text(base: Path) -> None:
    found = inputs(base)
    assert found.tokenizer.decode(found.problems[0].prompt_ids) == LLAMA[0] + text(ROWS[0])
    assert text(ROWS[0]).endswith("\n<think>")
    assert [one.prompt_ids for one in found.problems] == [found.tokenizer(text(row)).input_ids for row in ROWS]
    assert [json.loads(one.ground_truth) for one in found.problems] == ROWS
    with pytest.raises(UserError, match="no chat template; choose one with"):
        inputs(base, "data.apply_chat_template=true")


def test_a_run_in_r1_zero_style_makes_a_model_that_is_asked_in_the_same_way(base: Path, tmp_path: Path) -> None:
    """For real: two steps, then rollouts of the model made, by the same keys."""
    made = train(parse(GrpoSettings, words(base, tmp_path / "run")))
    assert [row["step"] for row in read_metrics(made / "metrics.jsonl")] == [0, 1, 2]
    recipe = verify(made / "final")
    assert recipe.settings["data.truth_key"] == ["target", "nums"]
    assert {"model", "prompt_template"} < recipe.inputs.keys()
    asked = [f"problems={base / 'rows.jsonl'}", f"output={tmp_path / 'rollouts'}", f"model={made / 'final'}"]
    settings = parse(CollectSettings, [*asked, "max_tokens=8", *KEYS])
    rollouts = collect(settings)
    assert verify(rollouts).inputs["prompt_template"] == recipe.inputs["prompt_template"]
    chats = read_problems(base / "rows.jsonl", settings.row_format())["prompt"].to_pylist()
    expected = [one.prompt_ids for one in inputs(base).problems]
    assert [prompt_tokens(load_tokenizer(made / "final"), chat) for chat in chats] == expected
    further = inputs(base, f"model.path={made / 'final'}", "data.apply_chat_template=true")
    assert [one.prompt_ids for one in further.problems] == expected
    with pytest.raises(UserError, match=r"made from other inputs .*source: 'countdown' then"):
        collect(parse(CollectSettings, [*asked, "max_tokens=8"]))


def test_the_template_of_no_text_is_a_choice_for_a_model_that_is_not_trained(base: Path, tmp_path: Path) -> None:
    set_chat_template(ChatTemplateSettings(str(base / "model"), str(tmp_path / "text"), "text"))
    tokenizer = load_tokenizer(tmp_path / "text")
    expected = [one.prompt_ids for one in inputs(base).problems]
    assert [prompt_tokens(tokenizer, [{"role": "user", "content": text(row)}]) for row in ROWS] == expected


def test_verl_gets_the_file_as_it_is_only_in_its_own_schema(base: Path, tmp_path: Path) -> None:
    form = parse(GrpoSettings, words(base, tmp_path)).row_format()
    [made] = written([str(base / "rows.jsonl")], form, tmp_path / "rows")
    plain = GrpoSettings().row_format()
    assert read_problems(Path(made)).equals(read_problems(base / "rows.jsonl", form))
    assert written([made], plain, tmp_path / "other") == [made]
    assert not (tmp_path / "other").exists()


def written(paths: list[str], form: RowFormat, folder: Path) -> list[str]:
    """What verl reads of these files."""
    files = files_for_verl(paths, form, folder)
    write_rows(paths, form, files)
    return files


@pytest.mark.full
@pytest.mark.parametrize("template", [None, *REASONING])
def test_verl_asks_and_stores_the_tokens_of_the_other_engine(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str | None
) -> None:
    """From its data set to its store by its configuration, without Ray; rows as text, or templates with a thought."""
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from compositionality.train.verl import configure, group_loop, start

    given = words(base, tmp_path / "run", "data.shuffle=false", "engine=verl", "run.device=cpu")
    if template:
        model = make_reasoning(tmp_path / "model", template)
        write_strings(tmp_path / "problems.parquet", 8)
        own = [f"model.path={model}", f"data.train_files={tmp_path / 'problems.parquet'}", "data.max_prompt_tokens=64"]
        given = [*(word for word in given if word.partition("=")[0] not in PLAIN), *own]
    settings = parse(GrpoSettings, given)
    train_grpo(parse(GrpoSettings, [*given, "dry_run=true"]))
    read = read_grpo_inputs(settings)
    settle_cluster(settings, imagined=True)
    config = configure.grpo_config(settings)
    config = start.final(config, start.context_of(config, {}, dry=False))
    store, response = AsyncMock(), SimpleNamespace(token_ids=[1, 2], log_probs=[-1.0, -2.0], extra_fields={})
    server = SimpleNamespace(generate=SimpleNamespace(remote=AsyncMock(return_value=response)))
    for name in ("async_kv_put", "async_kv_batch_put"):
        monkeypatch.setattr(f"transfer_queue.{name}", store)
    monkeypatch.setattr("transfer_queue.init", lambda: None)
    client = SimpleNamespace(_acquire_server=AsyncMock(return_value=("", server)), _release_server=Mock())
    worker = group_loop.GroupWorker(config, client)
    assert worker.tokenizer.chat_template == read.tokenizer.chat_template
    files = written(list(config.run.train_files), settings.row_format(), tmp_path / "rows")
    rows = PromptStream(RLHFDataset(files, worker.tokenizer, config.data), seed=1, shuffle=False).take(3)
    for row in rows:
        asyncio.run(worker._run_prompt({**row, "global_steps": 1}, {}, {"validate": False}))
    stored = [call.kwargs for call in store.await_args_list]
    assert [put["tag"]["status"] for put in stored if "tag" in put] == ["running", "finished"] * 3
    expected = [problem.prompt_ids for problem in read.problems[:3] for _ in range(2)]
    assert [call.kwargs["prompt_ids"] for call in server.generate.remote.await_args_list] == expected
    assert [ids.tolist() for put in stored if "fields" in put for ids in put["fields"]["prompts"]] == expected
