"""Markers of whole folders, files and tests, in one place."""

import gc
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONG: dict[str, list[str]] = {
    "analysis/test_laws.py": ["test_a_law_is_found_again", "test_the_same_seed_gives_the_same_fit"],
    "analysis/test_predict.py": [],
    "analysis/test_scaling.py": [],
    "config/test_algorithms.py": ["test_an_algorithm_is_one_word_and_leaves_nothing_that_makes_it_to_the_profile"],
    "config/test_cli.py": [
        "test_a_reader_that_stops_reading_is_no_error",
        "test_every_setting_has_a_phrase_and_every_number_a_range",
    ],
    "data/test_audit.py": ["test_the_papers_test_file_has_the_known_flaws"],
    "domains/test_guru.py": [
        "test_a_sample_of_every_domain_is_made_and_prepared",
        "test_the_same_rows_come_out_again_and_a_prompt_counts_once",
    ],
    "domains/test_math_judge.py": ["test_p04_a_right_answer_is_right"],
    "domains/test_math_notations.py": ["test_p04_all_forms_of_an_answer_are_one_and_no_other_is"],
    "domains/test_math_rules.py": [
        "test_p04_an_equation_counts_if_its_left_side_names_the_right_one",
        "test_p04_another_spelling_is_right_with_the_same_numbers_and_no_others",
        "test_p04_braces_around_a_part_are_not_seen",
        "test_p04_two_numbers_side_by_side_are_a_product",
        "test_p04_a_relation_is_right_times_a_number_and_with_its_sides_exchanged",
    ],
    "domains/test_sandbox.py": [],
    "domains/test_sandbox_attacks.py": [
        "test_p05_tests_that_do_not_run_or_never_call_the_program_are_broken_whatever_it_is",
        "test_p17_a_program_cannot_replace_a_name_of_its_tests",
        "test_p17_an_exception_of_a_program_ends_no_loop_of_its_tests",
    ],
    "evaluate/test_accuracy.py": ["test_only_new_and_changed_checkpoints_are_asked"],
    "evaluate/test_claims.py": ["test_a_rule_with_three_answers_takes_half_of_a_gain_as_its_margin"],
    "evaluate/test_claims_file.py": [],
    "evaluate/test_claims_gates.py": [],
    "evaluate/test_claims_injection.py": [],
    "evaluate/test_failures_judge.py": [
        "test_what_was_asked_once_is_not_asked_again",
        "test_p07_killed_and_run_again_it_asks_only_what_is_missing",
    ],
    "evaluate/test_gold.py": [],
    "evaluate/test_passk_curves.py": ["test_curves_that_cross_and_curves_that_do_not"],
    "evaluate/test_registration.py": [],
    "evaluate/test_seeds.py": [],
    "report/test_dashboard.py": [],
    "report/test_dry_runs.py": [
        "test_p26_a_dry_run_refuses_a_damaged_file_as_a_start_does",
        "test_a_dry_run_of_whole_inputs_passes_and_writes_nothing",
    ],
    "report/test_figures.py": [],
    "report/test_gpu_check.py": [
        "test_p12_every_command_fits_its_entry_point",
        "test_p12_verl_takes_the_configuration_of_its_steps",
        "test_the_sum_over_processes_is_checked",
        "test_a_check_that_is_stopped_leaves_what_it_has_measured",
        "test_a_failing_step_stops_only_what_needs_its_model",
    ],
    "report/test_page.py": [],
    "report/test_page_browser.py": [],
    "report/test_publish.py": [],
    "report/test_record.py": [],
    "reward/test_judge_pool.py": ["test_p04_p05_trouble_costs_its_own_item_only"],
    "rollout/test_collect.py": [
        "test_p07_kill_at_random_moments_gives_the_same_files",
        "test_p07_p10_a_collection_goes_on_with_another_number_of_replicas_and_judges",
        "test_memory_does_not_grow_with_the_number_of_samples",
        "test_p08_a_damaged_shard_is_made_again",
    ],
    "rollout/test_engines.py": ["test_a_whole_collection_with_a_real_model"],
    "rollout/test_model_folder.py": ["test_rollouts_of_a_hub_model_are_those_of_its_folder"],
    "rollout/test_sampler.py": [
        "test_logps_are_those_of_a_full_forward_pass",
        "test_an_answer_does_not_depend_on_neighbours_order_or_batch",
    ],
    "stats/test_estimate.py": [
        "test_p06_intervals_over_seeds_and_problems_hold_the_truth_at_the_nominal_rate",
        "test_p06_intervals_of_differences_hold_the_truth_at_the_nominal_rate",
        "test_p06_intervals_of_nested_replicates_hold_the_truth_at_the_nominal_rate",
        "test_p06_a_mean_of_several_sets_knows_that_its_seeds_are_the_same_models",
    ],
    "stats/test_significance.py": ["test_p_values_over_seeds_and_problems_are_below_1_percent_at_most_that_often"],
    "study/test_committed_study.py": [],
    "study/test_preflight.py": [
        "test_p18_what_does_not_fit_is_refused_with_the_setting_to_lower",
        "test_a_prompt_is_shown_as_the_model_sees_it",
        "test_p22_a_profile_on_its_machine_in_whole_words_as_wide_as_the_terminal_at_most_98",
    ],
    "study/test_registered_study.py": [],
    "study/test_runner.py": ["test_slurm_jobs_that_a_killed_run_left_are_waited_for_and_not_started_twice"],
    "study/test_sections.py": [],
    "study/test_slurm.py": [],
    "tasks/test_contract.py": [
        "test_p04_gold_scores_one_and_mutated_gold_none",
        "test_p01_random_access_equals_iteration_with_any_number_of_processes",
        "test_p02_splits_and_seeds_share_no_problem",
    ],
    "tasks/test_countdown_clean.py": ["test_p02_streams_are_large_in_small_ranges_and_say_when_they_are_empty"],
    "tasks/test_countdown_judge.py": ["test_p04_agrees_with_the_slow_definition", "test_p04_never_raises"],
    "tasks/test_countdown_solver.py": ["test_all_solutions_and_no_others"],
    "tasks/test_igsm.py": [
        "test_a_problem_is_what_its_level_says",
        "test_the_text_alone_determines_the_answer",
        "test_no_answer_is_right_too_often",
        "test_no_solution_states_a_wrong_value",
        "test_how_often_behaviours_occur",
    ],
    "tasks/test_streams.py": [
        "test_p01_number_of_processes_does_not_matter",
    ],
    "tasks/test_string_clean.py": [
        "test_p02_no_heldout_composition_behaves_like_a_trained_one",
        "test_every_division_of_the_functions_reaches_level_8",
    ],
    "tasks/test_string_paper.py": ["test_p01_sequence_is_exact"],
    "test_api.py": ["test_the_code_of_the_readme_runs", "test_training_takes_a_frame_and_is_the_command"],
    "test_instructions.py": ["test_the_command_passes_every_check_of_its_start"],
    "test_package.py": ["test_the_command_and_its_verbs_start_without_heavy_packages"],
    "test_recipes.py": [],
    "test_refusals.py": [],
    "test_step_contract.py": [],
    "test_scripts.py": [],
    "toy_task/test_pipeline.py": [],
    "train/single/test_grpo_command.py": [],
    "train/single/test_grpo_learning.py": [],
    "train/single/test_grpo_ranks.py": [],
    "train/single/test_grpo_run.py": [],
    "train/single/test_grpo_walk.py": [],
    "train/single/test_metric_names.py": [],
    "train/single/test_muon.py": [],
    "train/single/test_sft.py": [
        "test_p07_ctrl_c_within_a_checkpoint_is_quiet_and_the_same_command_goes_on",
        "test_p10_two_processes_give_the_weights_of_one",
        "test_p11_the_loss_falls_and_every_step_has_its_row",
        "test_p10_micro_batches_do_not_change_the_weights",
    ],
    "train/test_forecast.py": ["test_p22_activations_and_logits_of_the_single_file_trainers"],
    "train/test_log.py": [
        "test_a_run_says_what_it_is",
        "test_a_resumed_run_sends_what_an_earlier_process_wrote",
        "test_completions_are_a_growing_table",
        "test_a_run_is_sent_afterwards",
    ],
    "train/test_ranks.py": [],
    "train/test_reasoning_models.py": ["test_sft_rl_rollouts_and_export_of_the_single_file_trainers"],
    "train/test_rows.py": ["test_a_run_in_r1_zero_style_makes_a_model_that_is_asked_in_the_same_way"],
    "train/test_sft_launch.py": [
        "test_nothing_is_left_behind_when_the_child_hangs_or_ends",
        "test_nothing_is_left_behind_whatever_ends_the_launcher",
    ],
    "train/test_tiny_corpus.py": [],
    "train/test_tiny_pretrain.py": [
        "test_p07_killed_and_started_again_ends_with_the_same_bytes",
        "test_p07_two_processes_that_were_killed_go_on_as_two_or_as_one",
        "test_p10_two_processes_give_the_model_of_one",
        "test_a_finished_run_is_sent_to_wandb_afterwards",
        "test_the_pretraining_of_a_gpu_profile_takes_its_steps",
    ],
    "train/test_verl_engine.py": ["test_packed_rows_give_what_padded_rows_give"],
    "train/test_verl_profiles.py": [],
}
"""Files (or the named tests of them) with more than two seconds of processor time, left out by bash/test.sh --fast:
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
    "tests/train/test_cluster_real.py",
    "tests/test_confirmatory.py",
    "tests/train/test_sft_real.py",
    "tests/rollout/test_vllm_engine.py",
    "tests/train/single/test_grpo_ranks.py",
    "tests/train/test_tiny_pretrain.py",
    "tests/test_recipes.py",
    "tests/train/single/test_vllm_server.py",
    "tests/report/test_gpu_check.py",
)
"""Files with minutes of slow tests. They come first, so that at the end no worker waits long for the other; with
``--minutes`` last, in this order, until the time is up."""
BEGAN = "TESTS_BEGAN"
"""In the environment, for all workers: seconds since 1970 at the start, of .ci/run if that starts them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "minutes after which tests of the slowest files are left out, and named; what else there is comes first"
    parser.addoption("--minutes", type=float, help=told)


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(BEGAN, str(time.time()))
    gc.set_threshold(50_000)  # every collection visits all that is imported: a sixth of the time of the tests
    if config.pluginmanager.has_plugin("hypothesispytest"):  # clients' environments have none
        from hypothesis import settings

        settings.register_profile("tests", deadline=None)  # a busy machine is no fault
        settings.load_profile("tests")


def pytest_collection_finish() -> None:
    gc.freeze()


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
        for marker in ("kill", "attack"):
            if re.search(rf"(^|[_/]){marker}", item.nodeid.split("[")[0].replace("::", "/")):
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
