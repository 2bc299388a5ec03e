"""What a person sees of a training run."""

import re

from compositionality.train.verl.launch import StepLines

GRPO = (
    "(TaskRunner pid=1) step:7 - critic/score/mean:0.25 - actor/grad_norm:np.float64(1.5) - "
    "response_length/mean:31.2 - timing_s/step:4.25 - val-core/string-heldout-level2/acc/mean@1:0.375 - "
    "val-aux/string-heldout-level2/wrong/mean@1:0.1\n"
)


def test_a_step_of_grpo_in_one_short_line() -> None:
    shown = StepLines(40).read(GRPO)
    assert shown == "step 7/40  reward 0.25  gradient 1.5  tokens 31.2  seconds 4.25  string-heldout-level2 38 %"


def test_a_step_behind_a_progress_bar() -> None:
    line = "Epoch 2/5:  18%|█▊  | 8/44 [00:08<00:36,  1.01s/it]step:53 - train/loss:0.0203 - train/lr:1e-05\n"
    assert StepLines(None).read(line) == "step 53  loss 0.0203"


def test_other_lines_are_for_the_log() -> None:
    lines = StepLines(40)
    assert lines.read("WARNING something about NUMA\n") is None
    assert lines.read("Epoch 1/5: 100%|██████████| 44/44 [00:44<00:00]\n") is None


def test_time_left_follows_the_steps_seen() -> None:
    lines = StepLines(10)
    lines.read("step:1 - train/loss:1.0\n")
    shown = lines.read("step:2 - train/loss:0.5\n")
    assert shown is not None
    assert re.search(r" \d+:\d\d left$", shown)


def test_a_loss_that_is_no_number_is_shown() -> None:
    assert StepLines(None).read("step:3 - train/loss:nan\n") == "step 3  loss nan"


def test_levels_come_in_order_and_a_validation_is_no_step() -> None:
    lines = StepLines(10)
    accuracies = " - ".join(f"val-core/string-heldout-level{level}/acc/mean@1:0.5" for level in (10, 2, 1))
    shown = lines.read(f"step:0 - {accuracies}\n")
    assert shown is not None
    assert [word for word in shown.split() if "level" in word] == [f"string-heldout-level{n}" for n in (1, 2, 10)]
    assert "left" not in (lines.read("step:1 - train/loss:1.0\n") or "left")
