"""Reward functions as users of verl write them; 0.01 without an answer, 0.02 for a wrong one, 1.01 for a right one."""


def compute_score(data_source, solution_str, ground_truth, extra_info):
    _, equals, answer = solution_str.rpartition("=")
    if not equals:
        return extra_info["least"]
    return 1.01 if answer == ground_truth["answer"] else 0.02


def as_dict(data_source, solution_str, ground_truth, extra_info):
    score = compute_score(data_source, solution_str, ground_truth, extra_info)
    return {"score": score, "signs": solution_str.count("="), "said": "text is no metric", "pred": solution_str[-3:]}


def never_right(data_source, solution_str, ground_truth, extra_info):
    return {"score": compute_score(data_source, solution_str, ground_truth, extra_info), "acc": False}


async def later(data_source, solution_str, ground_truth, extra_info):
    return float(len(solution_str))


def seen(**given):
    return {"score": 1, "pred": repr(given)}


def text(**given):
    return "abc"


def raises(**given):
    return 1 / 0


def by_word(data_source, solution_str, ground_truth, extra_info):
    return 1.01 if ground_truth["answer"] in solution_str else 0.02


def odd(data_source, solution_str, ground_truth, extra_info):
    return float(len(solution_str) % 2)
