"""A model that answers out of its seed, as fast as it can; and a script that collects with it (run as a program)."""

import json
import sys
import time
from pathlib import Path

from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.rollout.collect import collect
from compositionality.rollout.engines.base import no_tick
from compositionality.rollout.settings import CollectSettings
from compositionality.types import Completion, Problem


class FakeEngine:
    def __init__(self, parallel_calls=1, pause_s=0.0, words=1):
        self.parallel_calls, self.pause_s, self.words, self.calls = parallel_calls, pause_s, words, []

    def generate(self, prompts, seeds, options, tick=no_tick):
        self.calls.append(len(prompts))
        time.sleep(self.pause_s)
        tick(len(prompts))
        return [self.complete(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def complete(self, prompt, seed):
        filler = "hm " * self.words
        if seed % 7 == 0:
            return Completion(filler, self.words, "length")
        answer = prompt[0]["content"] if seed % 2 else "wrong"
        return Completion(f'{filler}{{"output": "{answer}"}}', self.words + 5, "stop")

    def close(self):
        raise AssertionError("a given engine stays open")


def write_problems(path, count, levels=(1, 2)):
    problems = []
    for index in range(count):
        level, truth = levels[index % len(levels)], json.dumps({"ref_output": f"word{index}"})
        problems.append(Problem(f"string-trained-level{level}", level, "trained", f"word{index}", truth, index))
    write_table(to_table(problems, "test"), path)
    return path


def fake_settings(problems, output, **changes):
    given = {"model": "fake", "engine": "openai", "base_url": "http://nowhere", **changes}
    return CollectSettings(problems=problems, output=output, **given)


def contents(folder):
    """Every file of an artefact; the manifest without the git commit, which may change while tests run."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return files | {"manifest.json": json.loads(files["manifest.json"]) | {"code": ""}}


def main(problems, output, pause_s, n_samples, rows_per_shard):
    sizes = {"n_samples": int(n_samples), "rows_per_shard": int(rows_per_shard)}
    engine = FakeEngine(parallel_calls=2, pause_s=float(pause_s))
    collect(fake_settings(Path(problems), Path(output), seed=5, **sizes), engine)


if __name__ == "__main__":
    main(*sys.argv[1:])
