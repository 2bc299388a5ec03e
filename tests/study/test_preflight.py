"""``examples/preflight.py``: the table of a profile on a machine, and the comparison in bash/README.md."""

from io import StringIO
from pathlib import Path

import pytest
from assets import save, tiny_model
from rich.console import Console

from compositionality.errors import UserError
from compositionality.study.preflight import PreflightSettings, comparison, forecast_of, preflight

ROOT = Path(__file__).parents[2]


def single(**more: object) -> PreflightSettings:
    """The profile single on one GPU of 80 GB."""
    given = {"gpus": 1, "gpu_memory_gb": 80.0, "host_memory_gb": 200.0, "disk_gb": 1000.0, **more}
    return PreflightSettings("single", **given)  # type: ignore[arg-type]


def test_p22_a_profile_on_its_machine_in_whole_words_as_wide_as_the_terminal_at_most_98(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table, or lines where that is too wide; what is no word of the table stands between the cells of a line."""
    forecast = forecast_of(single(gpu_memory_gb=8.0, prompt=False))
    monkeypatch.setattr("compositionality.study.preflight.forecast_of", lambda _: forecast)

    def shown(terminal: int) -> list[str]:
        console = Console(width=terminal, file=StringIO(), force_terminal=True, color_system=None)
        monkeypatch.setattr("compositionality.study.preflight.new_console", lambda: console)
        with pytest.raises(UserError, match="does not fit"):
            preflight(forecast.settings)
        return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]

    def words(lines: list[str]) -> set[str]:
        return {word.strip(",;:─") for line in lines for word in line.split()}

    wide = shown(200)
    assert max(map(len, wide)) == 98
    steps = ("pretraining", "sampling", "SFT", "GRPO, update", "the study", "Calculated from the settings; time is not")
    for terminal in range(40, 121):
        lines = shown(terminal)
        assert all(len(line) <= min(terminal, 98) or len(line.split()) == 1 for line in lines), terminal
        assert words(lines) <= words(wide) | {"needed", "available"}, terminal
        assert all(step in " ".join(lines) for step in steps), terminal
        assert " ".join(lines).count(" fits") > 5
        assert words(wide) - words(lines) <= {"", "step", "largest", "parts"}


def test_p18_what_does_not_fit_is_refused_with_the_setting_to_lower(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"profile=single/single does not fit 1 × 8 GB: .*GRPO, update \(memory of"):
        preflight(single(gpu_memory_gb=8.0))
    assert "lower trainer.micro_batch_tokens" in capsys.readouterr().out.replace("\n", " ")


def test_p18_settings_that_would_be_dropped_are_refused() -> None:
    with pytest.raises(UserError, match="profile=tiny computes on a CPU; leave gpus and gpu_memory_gb out"):
        preflight(PreflightSettings("tiny", gpus=8))
    with pytest.raises(UserError, match="compares all GPU profiles; leave profile out"):
        preflight(PreflightSettings("paper", compare=True))


def test_p18_a_gpu_profile_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError, match="profile=paper needs GPUs and this machine has none; give gpus="):
        preflight(PreflightSettings("paper"))
    assert capsys.readouterr().out == ""


def test_a_prompt_is_shown_as_the_model_sees_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preflight(single(model=str(save(tmp_path, *tiny_model(["reverse"])))))
    shown = capsys.readouterr().out
    assert "A prompt as the model sees it:\n<|user|>" in shown
    preflight(single())
    assert "A prompt as the model sees it:\n<|user|>" in capsys.readouterr().out, "of the model that is made"


@pytest.mark.slow
def test_profile_and_model_may_be_those_of_the_scripts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = {"gpus": 8, "gpu_memory_gb": 80, "host_memory_gb": 2000, "disk_gb": 100000, "prompt": False}
    monkeypatch.setenv("PROFILE", "instruct")
    monkeypatch.setenv("BASE_MODEL", "Qwen/Qwen2.5-7B-Instruct")
    preflight(PreflightSettings(**machine))  # type: ignore[arg-type]
    assert capsys.readouterr().out.startswith("instruct/verl: 7,615.6 M parameters on 8 × 80 GB")
    preflight(PreflightSettings("paper", "Qwen2.5-1.5B", **machine))  # type: ignore[arg-type]
    assert capsys.readouterr().out.startswith("paper/verl: 1,543.7 M parameters")


@pytest.mark.full
@pytest.mark.long
def test_p22_the_table_in_the_readme_is_what_the_command_prints() -> None:
    assert comparison() in (ROOT / "bash/README.md").read_text()
