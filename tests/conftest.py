"""Markers of whole folders, files and tests, in one place."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONG: dict[str, list[str]] = {
    "analysis/test_predict.py": [],
    "evaluate/test_failures_judge.py": ["test_p07_killed_and_run_again_it_asks_only_what_is_missing"],
    "report/test_figures.py": [],
    "report/test_gpu_check.py": [
        "test_p12_every_command_fits_its_entry_point",
        "test_p12_verl_takes_the_configuration_of_its_steps",
        "test_the_sum_over_processes_is_checked",
    ],
    "report/test_page.py": [],
    "report/test_page_browser.py": [],
    "report/test_publish.py": [],
    "rollout/test_collect.py": [
        "test_p07_kill_at_random_moments_gives_the_same_files",
        "test_memory_does_not_grow_with_the_number_of_samples",
    ],
    "rollout/test_hub_model.py": [],
    "rollout/test_openai_engine.py": ["test_secrets_are_in_no_file_and_no_message"],
    "rollout/test_sampler.py": [
        "test_greedy_answers_are_those_of_generate",
        "test_logps_are_those_of_a_full_forward_pass",
        "test_an_answer_does_not_depend_on_neighbours_order_or_batch",
    ],
    "stats/test_estimate.py": [
        "test_p06_intervals_over_seeds_and_problems_hold_the_truth_at_the_nominal_rate",
        "test_p06_intervals_of_differences_hold_the_truth_at_the_nominal_rate",
        "test_p06_intervals_of_nested_replicates_hold_the_truth_at_the_nominal_rate",
    ],
    "tasks/test_countdown_clean.py": ["test_p02_streams_are_large_in_small_ranges_and_say_when_they_are_empty"],
    "tasks/test_countdown_judge.py": ["test_p04_agrees_with_the_slow_definition"],
    "tasks/test_countdown_solver.py": [
        "test_all_solutions_and_no_others",
    ],
    "domains/test_sandbox.py": [],
    "tasks/test_streams.py": ["test_p01_number_of_processes_does_not_matter"],
    "study/test_committed_study.py": [],
    "study/test_sections.py": [],
    "study/test_slurm.py": [],
    "study/test_preflight.py": [
        "test_p18_what_does_not_fit_is_refused_with_the_setting_to_lower",
        "test_a_prompt_is_shown_as_the_model_sees_it",
        "test_p22_a_profile_on_its_machine_in_a_table_as_wide_as_the_terminal_at_most_98",
    ],
    "study/test_registered_study.py": [],
    "test_api.py": ["test_the_code_of_the_readme_runs", "test_training_takes_a_frame_and_is_the_command"],
    "test_recipes.py": [],
    "test_refusals.py": [],
    "test_scripts.py": [],
    "test_instructions.py": ["test_the_command_passes_every_check_of_its_start"],
    "toy_task/test_pipeline.py": [],
    "train/single/test_grpo_command.py": [],
    "train/single/test_grpo_learning.py": [],
    "train/single/test_grpo_ranks.py": [],
    "train/single/test_grpo_run.py": [
        "test_a_run_trains_evaluates_saves_and_exports",
        "test_a_finished_run_that_is_lengthened_ends_with_the_same_bytes",
        "test_with_dynamic_sampling_a_run_ends_when_its_epoch_is_used_up",
        "test_the_trainer_and_the_sampler_find_the_same_log_probs",
        "test_p13_the_export_reloads",
        "test_every_algorithm_runs",
        "test_p10_micro_batches_do_not_change_the_result",
    ],
    "train/single/test_sft.py": [
        "test_p07_ctrl_c_within_a_checkpoint_is_quiet_and_the_same_command_goes_on",
        "test_p10_two_processes_give_the_weights_of_one",
        "test_p07_killed_and_started_again_ends_with_the_same_bytes",
        "test_p11_the_loss_falls_and_every_step_has_its_row",
    ],
    "train/test_ranks.py": [],
    "train/test_tiny_pretrain.py": [
        "test_p07_killed_and_started_again_ends_with_the_same_bytes",
        "test_p07_two_processes_that_were_killed_go_on_as_two_or_as_one",
        "test_p10_two_processes_give_the_model_of_one",
    ],
    "train/test_verl_profiles.py": [],
    "train/test_verl_engine.py": ["test_packed_rows_give_what_padded_rows_give"],
}
"""Files (or the named tests of them) with more than five seconds of processor time, left out by bash/test.sh --fast:
scripts and runs that are started, killed and resumed, several processes, real models, figures, simulations."""

FULL: dict[str, list[str]] = {
    "adapters/test_trl_reward.py": ["test_rows_of_the_file_are_what_it_reads"],
    "adapters/test_verl_recipe.py": [],
    "data/test_audit.py": ["test_the_papers_file_repeats_problems"],
    "tasks/test_countdown_library.py": [],
    "tasks/test_countdown_paper.py": [],
    "domains/test_reasoning_gym_attacks.py": [],
    "train/test_grpo_filter.py": [],
}
"""Files (or the named tests of them) that skip themselves in the small set-up: bash/test.sh --rest must run them."""

SLOWEST = (
    "tests/test_studies.py",
    "tests/train/test_grpo_real.py",
    "tests/test_confirmatory.py",
    "tests/train/test_sft_real.py",
    "tests/rollout/test_vllm_engine.py",
    "tests/train/single/test_grpo_ranks.py",
    "tests/train/test_tiny_pretrain.py",
    "tests/test_recipes.py",
    "tests/train/single/test_samplers_server.py",
    "tests/report/test_gpu_check.py",
    "tests/train/test_cluster_real.py",
)
"""Files with minutes of slow tests. They come first, so that at the end no worker waits long for the other; with
``--minutes`` last, in this order, until the time is up."""
BEGAN = "TESTS_BEGAN"
"""In the environment, for all workers: seconds since 1970 at the start."""


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "minutes after which tests of the slowest files are left out, and named; what else there is comes first"
    parser.addoption("--minutes", type=float, help=told)


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(BEGAN, str(time.time()))
    if config.pluginmanager.has_plugin("hypothesispytest"):  # clients' environments have none
        from hypothesis import settings

        settings.register_profile("tests", deadline=None)  # a busy machine is no fault
        settings.load_profile("tests")


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("minutes")
    if minutes is not None and is_slowest(item) and time.time() - float(os.environ[BEGAN]) > 60 * minutes:
        pytest.skip(f"left out: {minutes:g} minutes are over")


def is_slowest(item: pytest.Item) -> bool:
    return item.path.as_posix().endswith(SLOWEST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(TESTS).as_posix() if TESTS in item.path.parents else ""
        if path.startswith("benchmarks/"):
            item.add_marker("benchmark")
        for table, marker in ((LONG, "long"), (FULL, "full")):
            if path in table and (not table[path] or item.name.split("[")[0] in table[path]):
                item.add_marker(marker)
        if path == "tasks/test_contract.py" and "reasoning_gym" in item.name:
            item.add_marker("full")
    if config.getoption("minutes") is None:
        items.sort(key=lambda item: not is_slowest(item))
    else:
        items.sort(key=lambda item: next((n for n, file in enumerate(SLOWEST) if item.path.match(file)), -1))


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """What a test sets in the environment, as a start does of a study's device, ends with it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
