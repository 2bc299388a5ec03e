"""Chat templates as a choice: the text of each format, what is refused, and every reader of the folder made."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from base_models import LLAMA, QWEN, make_base
from sft_assets import overrides

from compositionality.config.cli import parse
from compositionality.data.artefact import input_hash, verify
from compositionality.errors import UserError
from compositionality.rollout.model_folder import check_model, load_tokenizer
from compositionality.rollout.prompts import chat_row, chat_text, prompt_tokens
from compositionality.train.chat_template import FORMATS, ChatTemplateSettings, check, set_chat_template
from compositionality.train.rows import check_template, load_rows
from compositionality.train.sft_settings import SftSettings
from compositionality.types import Message

USER, ANSWER = Message(role="user", content=" What is 1+1?\n"), Message(role="assistant", content="2")
DATES = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
)
LLAMA_PROMPT = (
    "<|start_header_id|>user<|end_header_id|>\n\nWhat is 1+1?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
QWEN_PROMPT = "<|im_start|>user\n What is 1+1?\n<|im_end|>\n<|im_start|>assistant\n"
HELPFUL = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
TEXTS = {  # prompt, what an answer adds
    "llama-3.1": (DATES + LLAMA_PROMPT, "2<|eot_id|>"),
    "plain": ("<|begin_of_text|>" + LLAMA_PROMPT, "2<|eot_id|>"),
    "qwen2.5": (HELPFUL + QWEN_PROMPT, "2<|im_end|>\n"),
    "qwen3": (QWEN_PROMPT + "<think>\n\n</think>\n\n", "2<|im_end|>\n"),
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Base models of both families by the first letters of a template's name."""
    root = tmp_path_factory.mktemp("bases")
    llama, qwen = make_base(root / "llama", LLAMA), make_base(root / "qwen", QWEN)
    return {"ll": llama, "pl": llama, "qw": qwen}


@pytest.fixture(scope="module")
def made(bases: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of every template."""
    root = tmp_path_factory.mktemp("made")
    for name in FORMATS:
        set_chat_template(ChatTemplateSettings(str(bases[name[:2]]), str(root / name), name))
    return {name: root / name for name in FORMATS}


@pytest.mark.parametrize("name", FORMATS)
def test_text_loss_and_eos_are_those_of_the_format(made: dict[str, Path], bases: dict[str, Path], name: str) -> None:
    model, (prompt, answer) = check_model(made[name]), TEXTS[name]
    tokenizer, prompt_ids = model.tokenizer, prompt_tokens(model.tokenizer, [USER])
    assert chat_text(tokenizer, [USER], add_generation_prompt=True) == prompt == tokenizer.decode(prompt_ids)
    assert chat_text(tokenizer, [USER, ANSWER]) == prompt + answer
    check_template(made[name], tokenizer)
    row = chat_row([USER, ANSWER, USER, ANSWER], tokenizer)
    trained = [token for token, mark in zip(row.tokens, row.loss_mask, strict=True) if mark]
    assert tokenizer.decode(trained) == f"2{FORMATS[name][0]}" * 2
    assert chat_row([USER, ANSWER], tokenizer).tokens[: -len("2") - 1] == prompt_ids
    assert tokenizer.eos_token == FORMATS[name][0]
    before = json.loads((bases[name[:2]] / "config.json").read_text())["eos_token_id"]
    for file in ("generation_config.json", "config.json"):
        ends = json.loads((made[name] / file).read_text())["eos_token_id"]
        assert ends == [tokenizer.eos_token_id, before]
    assert set(model.eos_ids) == set(ends)


def test_weights_are_links_and_count_by_their_content_and_another_template_needs_force(
    made: dict[str, Path], bases: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, link = made["plain"], made["plain"] / "model.safetensors"
    assert link.is_symlink()
    assert link.resolve() == bases["pl"] / "model.safetensors"
    assert verify(folder).inputs == {"model": input_hash(bases["pl"])}
    copy = folder.with_name("copied")
    shutil.copytree(folder, copy)  # with the weights
    assert input_hash(copy) == input_hash(folder)
    set_chat_template(ChatTemplateSettings(str(bases["pl"]), str(folder), "plain"))
    assert "is already there" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"was made from other inputs \(chat_template: .*--force"):
        set_chat_template(ChatTemplateSettings(str(bases["pl"]), str(folder), "llama-3.1"))


def test_the_links_lead_past_those_of_the_cache(bases: dict[str, Path], tmp_path: Path) -> None:
    snapshot = shutil.copytree(bases["ll"], tmp_path / "snapshot")
    blob = (snapshot / "model.safetensors").rename(tmp_path / "blob")
    (snapshot / "model.safetensors").symlink_to("../blob")
    set_chat_template(ChatTemplateSettings(str(snapshot), str(tmp_path / "made"), "plain"))
    assert (tmp_path / "made" / "model.safetensors").readlink() == blob
    blob.unlink()
    with pytest.raises(UserError, match=r"no weights|weights are missing"):
        check_model(tmp_path / "made")


def test_a_hub_id_is_no_folder_that_holds_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(ChatTemplateSettings("owner/name", "owner/name/plain", "plain"))
    (tmp_path / "owner/name").mkdir(parents=True)
    with pytest.raises(UserError, match="is inside the input owner/name"):
        check(ChatTemplateSettings("owner/name", "owner/name/plain", "plain"))


def test_a_template_of_an_earlier_folder_gives_way(made: dict[str, Path], tmp_path: Path) -> None:
    """Also that of a model which has one: what is made from it is what is made from the base."""
    set_chat_template(ChatTemplateSettings(str(made["llama-3.1"]), str(tmp_path / "plain"), "plain"))
    for name in ("tokenizer_config.json", "chat_template.jinja", "generation_config.json", "config.json"):
        assert (tmp_path / "plain" / name).read_bytes() == (made["plain"] / name).read_bytes()
    set_chat_template(ChatTemplateSettings(str(made["plain"]), str(tmp_path / "own"), "own"))
    assert load_tokenizer(tmp_path / "own").chat_template == load_tokenizer(made["plain"]).chat_template


def test_a_file_of_ones_own(bases: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}\n"
        "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
    )
    set_chat_template(ChatTemplateSettings(str(bases["ll"]), str(tmp_path / "made"), str(file)))
    tokenizer = load_tokenizer(tmp_path / "made")
    assert chat_text(tokenizer, [USER, ANSWER]).endswith("assistant: 2<|end_of_text|>")


@pytest.mark.parametrize(
    ("family", "settings", "told"),
    [
        ("ll", {"chat_template": "qwen2.5"}, r"the tokenizer has no token <\|im_end\|>, which chat_template=qwen2.5"),
        ("qw", {"chat_template": "plain"}, r"no token <\|eot_id\|>, .*CHAT_TEMPLATE=own"),
        ("ll", {"chat_template": "own"}, "no chat template of its own; choose chat_template from llama-3.1"),
        ("ll", {"chat_template": "llama3"}, "chat_template=llama3: choose own, text, llama-3.1, plain, qwen2.5, qwen3"),
        ("ll", {"chat_template": "no.jinja"}, r"chat_template=no\.jinja: choose own"),
        ("ll", {"chat_template": "plain", "eos_token": "<|end|>"}, r"no token <\|end\|>"),
        ("ll", {"chat_template": "plain", "eos_token": "<|end_of_text|>"}, "not end an answer with exactly one EOS"),
        ("ll", {"chat_template": "{{ messages"}, r"mine\.jinja: does not render a question and an answer"),
        ("ll", {"chat_template": "{% for m in messages %}<|x|>{{ m.content + eos_token }}{% endfor %}"}, r"<\|x\|>"),
        ("ll", {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}, "no generation prompt"),
        ("ll", {"chat_template": "{{ messages + 1 }}"}, "does not render"),
        ("ll", {"chat_template": "{{ 1 / 0 }}"}, "does not render a question and an answer: division by zero"),
    ],
)
def test_p18_a_template_that_does_not_fit_is_one_line(
    bases: dict[str, Path], tmp_path: Path, family: str, settings: dict[str, str], told: str
) -> None:
    if "{" in settings["chat_template"]:
        (tmp_path / "mine.jinja").write_text(settings["chat_template"])
        settings = {"chat_template": str(tmp_path / "mine.jinja")}
    with pytest.raises(UserError, match=told):
        set_chat_template(ChatTemplateSettings(str(bases[family]), str(tmp_path / "made"), **settings))
    assert not [path for path in tmp_path.iterdir() if path.name not in ("mine.jinja", ".made.lock")]


def test_p18_a_dry_run_says_that_the_model_is_not_there_and_a_start_names_the_command(
    bases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"examples/set_chat_template\.py model=.*chat_template=llama-3.1"):
        check_model(bases["ll"])
    check(ChatTemplateSettings(str(bases["ll"]), "made", "plain"))
    assert capsys.readouterr().err == ""
    check(ChatTemplateSettings(str(tmp_path / "typo"), "made", "plain"))
    assert capsys.readouterr().err == f"{tmp_path / 'typo'}: no such folder here, so the model is not checked\n"


def test_p20_both_transformers_find_template_and_eos(made: dict[str, Path]) -> None:
    """4 reads the configuration where there is no file, 5 the file first; both are the same."""
    for folder in made.values():
        config: dict[str, Any] = json.loads((folder / "tokenizer_config.json").read_text())
        assert config["chat_template"] == (folder / "chat_template.jinja").read_text()
        assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert json.loads((folder / "config.json").read_text())["rope_theta"]


@pytest.mark.full
@pytest.mark.parametrize("name", FORMATS)
def test_verls_sft_rows_are_ours(made: dict[str, Path], name: str, tmp_path: Path) -> None:
    """verl reads them by the class that our configuration names; its own also trains on what follows the EOS."""
    pytest.importorskip("verl")
    import pandas as pd
    from omegaconf import open_dict
    from verl.trainer.sft_trainer import create_sft_dataset

    from compositionality.train.verl.configure import sft_config

    path = tmp_path / "rows.parquet"
    pd.DataFrame({"messages": [[USER, ANSWER], [USER, ANSWER, USER, ANSWER]]}).to_parquet(path)
    words = overrides(made[name], path, tmp_path / "out", "data.max_length=2048", "run.processes=1")
    data = sft_config(parse(SftSettings, words)).data
    tokenizer = load_tokenizer(made[name])
    rows = create_sft_dataset([str(path)], data, tokenizer, None)
    assert len(rows) == 2
    for row, ours in zip(rows, load_rows(path, tokenizer, 512), strict=True):
        assert (row["input_ids"].tolist(), row["loss_mask"].tolist()) == (ours.tokens, ours.loss_mask)
        assert row["position_ids"].tolist() == list(range(len(ours.tokens)))
    with open_dict(data):
        data.custom_cls.path = None
    verls = create_sft_dataset([str(path)], data, tokenizer, None)[0]["input_ids"].tolist()
    assert tokenizer.decode(verls) == "".join(TEXTS[name])
    assert verls[: len(rows[0]["input_ids"])] == rows[0]["input_ids"].tolist()
