"""Logic puzzles of our own, solved again from their prompts by other means: each has one solution, the ground truth."""

import json
import re
from itertools import permutations, product

import numpy as np
import pytest

from compositionality.domains.logic.puzzles import ATTRIBUTES, LogicOptions
from compositionality.domains.logic.task import TASK

BETWEEN = (
    (r"(.+) (?:is|lives) directly left of (.+)", lambda a, b: b - a == 1),
    (r"(.+) (?:is|lives) somewhere left of (.+)", lambda a, b: a < b),
    (r"(.+) (?:is|lives) next to (.+)", lambda a, b: abs(a - b) == 1),
)
PLACES = (
    (r"(.+) (?:does not live|is not) (?:in house|at place) (\d)(?: from the left)?", lambda a, at: a + 1 != at),
    (r"(.+) (?:lives|is) (?:in house|at place) (\d)(?: from the left)?", lambda a, at: a + 1 == at),
)


def clues_of(prompt: str) -> list[str]:
    return re.findall(r"^\d+\. (.+)\.$", prompt, re.MULTILINE)


def holds(clue: str, place: dict[str, int]) -> bool:
    """Whether a sentence is true where ``place`` gives the positions of all things by their descriptions."""
    text = clue[0].lower() + clue[1:] if clue.startswith("The ") else clue
    for pattern, test in PLACES:
        if found := re.fullmatch(pattern, text):
            return test(place[found[1]], int(found[2]))
    for pattern, test in BETWEEN:
        if found := re.fullmatch(pattern, text):
            return test(place[found[1]], place[found[2]])
    first, second = text.split(" is ")
    return place[first] == place[second]


@pytest.mark.parametrize(("size", "attributes", "count"), [(2, 3, 12), (3, 2, 20), (3, 3, 20), (4, 2, 8), (4, 3, 2)])
def test_p04_a_zebra_puzzle_has_one_solution(size, attributes, count):
    options = LogicOptions(levels=(size,), attributes=attributes)
    for index in range(count):
        problem = TASK.problem(options, "train", 0, index)
        given = dict(re.findall(r"^- (\w+): (.+)$", problem.prompt, re.MULTILINE))
        solutions = []
        for rows in product(*(permutations(values.split(", ")) for values in given.values())):
            place = {
                ATTRIBUTES[title][0].format(value): at
                for title, row in zip(given, rows, strict=True)
                for at, value in enumerate(row)
            }
            if all(holds(clue, place) for clue in clues_of(problem.prompt)):
                solutions.append([[str(at + 1), *(row[at] for row in rows)] for at in range(size)])
        truth = json.loads(problem.ground_truth)
        assert solutions == [truth["rows"]]
        assert truth["header"] == ["House", *given]


@pytest.mark.parametrize(("size", "count"), [(3, 30), (4, 30), (6, 10), (7, 3)])
def test_p04_an_ordering_has_one_solution_and_no_clue_too_many(size, count):
    options = LogicOptions(kind="ordering", levels=(size,))
    for index in range(count):
        problem = TASK.problem(options, "test", 0, index)
        things = re.search(r"in a row: (.+)\.", problem.prompt)[1].split(", ")
        clues = clues_of(problem.prompt)
        places = [({f"the {name}": at for at, name in enumerate(row)}, row) for row in permutations(things)]
        right = [list(row) for place, row in places if all(holds(clue, place) for clue in clues)]
        assert right == [json.loads(problem.ground_truth)]
        if size < 6:
            for left_out in clues:
                rest = [clue for clue in clues if clue != left_out]
                assert sum(all(holds(clue, place) for clue in rest) for place, _ in places) > 1


@pytest.mark.parametrize("level", [1, 2, 5, 8])
def test_p04_a_graph_has_one_path_of_the_level(level):
    for branches, index in product((2, 3), range(15)):
        options = LogicOptions(kind="graph", levels=(level,), branches=branches)
        problem = TASK.problem(options, "train", 3, index)
        edges = re.findall(r"(\w) -> (\w)", problem.prompt)
        start, goal = re.search(r"You are at (\w) and want to reach (\w) ", problem.prompt).groups()
        paths = [[start]]
        for _ in range(level):
            paths = [[*path, there] for path in paths for here, there in edges if here == path[-1]]
        right = [path for path in paths if path[-1] == goal]
        assert len(paths) == branches
        assert [path[1] for path in right] == [json.loads(problem.ground_truth)]
        assert len(edges) == branches * level


def other_library() -> list:
    """The transformations, written with numpy."""
    moves = [
        np.fliplr, np.flipud, lambda g: np.rot90(g, 2), np.transpose, lambda g: np.rot90(g, -1), np.rot90,
        lambda g: np.roll(g, 1, axis=1), lambda g: np.roll(g, 1, axis=0),
    ]  # fmt: skip

    def swap(a, b):
        return lambda g: np.where(g == a, b, np.where(g == b, a, g))

    return moves + [swap(a, b) for a in range(6) for b in range(a)]


@pytest.mark.parametrize(("size", "operations", "count"), [(2, 1, 10), (3, 1, 20), (5, 1, 10), (3, 2, 4), (4, 2, 4)])
def test_p04_all_that_explains_the_examples_agrees_on_the_grid(size, operations, count):
    options = LogicOptions(kind="arc", levels=(size,), operations=operations)
    library = other_library()
    for index in range(count):
        problem = TASK.problem(options, "train", 0, index)
        inputs, outputs = (
            [np.array(json.loads(one)) for one in re.findall(rf"^{word}: (.+)$", problem.prompt, re.MULTILINE)]
            for word in ("Input", "Output")
        )
        found = []
        for length in range(1, operations + 1):
            for moves in product(library, repeat=length):

                def result(grid, moves=moves):
                    for move in moves:
                        grid = move(grid)
                    return grid

                if all(np.array_equal(result(a), b) for a, b in zip(inputs, outputs, strict=False)):
                    found.append(result(inputs[-1]).tolist())
                    assert length == operations or size == 2
        assert found
        assert all(grid == json.loads(problem.ground_truth) for grid in found)
        assert len(inputs) == len(outputs) + 1 == 4


@pytest.mark.parametrize("branches", [2, 3])
def test_p03_a_graph_is_of_one_split_whatever_the_goal_and_the_order_of_its_edges(branches):
    def graphs(split: str) -> set[frozenset[str]]:
        options = LogicOptions(kind="graph", levels=(1,), branches=branches)
        prompts = [TASK.problem(options, split, 1, index).prompt for index in range(1000)]
        return {frozenset(re.findall(r"\w -> \w", prompt)) for prompt in prompts}

    assert not graphs("train") & graphs("test")
