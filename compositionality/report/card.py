"""The card of what is published: what it is, how to load it, how it was made, how right it is; for readers and the Hub.

The metadata are written by huggingface_hub's own classes. A model's accuracy is that of these very weights.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml  # type: ignore[import-untyped]

from compositionality.data.artefact import MANIFEST, Manifest, combined_hash, read_manifest
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.results import Results, read_results
from compositionality.evaluate.seeds import summary_of
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import TITLES, summary_markdown
from compositionality.report.record import FIGURE, RECORD

TEMPLATE = Path(__file__).with_name("card.md.j2")
CONFIGURATIONS = {"sft": "messages", "problems": "prompt", "rollouts": "response", "results": "arm"}
"""Names of configurations, by a column of their rows."""
Pair = tuple[Results, Results]
"""The results of a model, and those of its arm in all seeds."""


class Part(NamedTuple):
    """A result with the files of it that are published and those that are left out; ``name``: its configuration."""

    name: str
    path: Path
    made: Manifest
    files: Sequence[str]
    left_out: Sequence[str]

    @property
    def root(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def digest(self) -> str:
        """Its hash as an input."""
        return combined_hash(self.path, self.made.files)


class NamedSource(NamedTuple):
    """An entry of ``sources``: what something was made from or tested on; ``hub``: OWNER/NAME, or empty."""

    name: str
    hub: str
    path: Path
    made: Manifest | None
    digests: set[str]  # of it and of the files in it


class Link(NamedTuple):
    """An input of a step, by its hash."""

    step: str
    name: str
    digest: str
    source: NamedSource | None


class Split(NamedTuple):
    """Files of rows, by their places in the folder."""

    config: str
    name: str
    part: Part
    files: dict[str, Path]


def evaluation_of(model: Part, entries: Sequence[str]) -> Pair:
    """Return the results of this model, found by its hash, and those of its arm in all seeds. UserError for none."""
    results = read_results(entries)
    for replicate in results.replicates:
        for answers in sorted(replicate.tables[RESULTS].parent.glob(f"rollouts/*/*/{MANIFEST}")):
            made = read_manifest(answers.parent)
            if made and made.inputs.get("model") == model.digest:
                arm = results.choose([answers.parent.parent.name])
                return arm.only([replicate.name]), arm
    raise UserError(
        f"results: none has answers of {model.path} beside it; run examples/evaluate.py models=[{model.path}]"
    )


def study_of(part: Part, places: Mapping[str, str]) -> dict[str, Any]:
    """Return what a record or a page begins with: its finding, its figure, its primary claims as rows of text.

    ``places``: where the card has its files, by their names.
    """
    from compositionality.report.page.claims import figures_of, said
    from compositionality.report.page.inputs import FINDING, MAIN
    from compositionality.report.theme import arm_styles

    named = [f"figures/{name}.{ending}" for name in ("headline", *MAIN.values()) for ending in ("png", "svg")]
    figure = next((places[name] for name in (FIGURE, *named) if name in places), "")
    finding = (part.path / FINDING).read_text(encoding="utf-8").splitlines()[:2] if FINDING in places else []
    record = read_json_object(part.path / RECORD, "make the record again") if RECORD in places else {}
    claims = [claim for claim in record.get("claims", ()) if claim.get("primary")]
    compared = [row for claim in claims for row in claim["comparisons"]]
    styles = arm_styles(dict.fromkeys(name for row in compared for name in (row["model"], row["base"]) if name))
    rows = [
        {"text": claim["text"], "measured": ", ".join(figures_of(claim, 1.0, styles)) or "–",
         "decision": said(claim, claim.get("decision_holm")), "reason": claim["reason"] or ""}
        for claim in claims
    ]  # fmt: skip
    return {"finding": " ".join(finding), "figure": figure, "claims": rows}


def card(
    texts: Mapping[str, Any],
    parts: Sequence[Part],
    links: Sequence[Link],
    splits: Sequence[Split],
    results: Pair | None,
) -> str:
    """Return a model's card, or one of data (which has no ``results``), with its metadata.

    ``texts``: kind, title, words, studies, licence, command, limits.
    """
    from huggingface_hub import DatasetCard, ModelCard

    made = [part.made for part in parts]
    steps = {one.step for one in made} | {link.source.made.step for link in links if link.source and link.source.made}
    tables = [summary_markdown(summary_of(one)).strip() for one in results or ()]
    data = _model_data(texts, parts[0], links, results) if texts["model"] else _dataset_data(texts, splits)
    text = (ModelCard if texts["model"] else DatasetCard).from_template(
        data,
        template_path=str(TEMPLATE),
        **texts,
        parts=parts,
        links=links,
        recipes=[yaml.safe_dump({"settings": one.settings, "facts": one.facts}, width=100).strip() for one in made],
        splits=[_row(split) for split in splits],
        base=", ".join(_on_hub(links, model=True)[:1]),
        from_scratch="pretrain_tiny" in steps,
        own=tables[0] if tables else "",
        arm=tables[1] if results and results[1].n_seeds > 1 else "",
    )
    return re.sub(r"\n{3,}", "\n\n", str(text)).strip()


def _on_hub(links: Sequence[Link], *, model: bool) -> list[str]:
    """Return OWNER/NAME of the models, or of the other inputs, the nearest first."""
    wanted = [link.source for link in links if (link.name == "model") is model]
    return list(dict.fromkeys(source.hub for source in wanted if source and source.hub))


def _model_data(texts: Mapping[str, Any], part: Part, links: Sequence[Link], results: Pair | None) -> Any:
    from huggingface_hub import EvalResult, ModelCardData

    measured = [
        EvalResult(
            task_type="text-generation", dataset_type=row["problems"], dataset_name=row["problems"],
            metric_type="accuracy", metric_value=round(row["accuracy"], 4), metric_name=_figure(row),
        )
        for row in accuracies(results[0] if results else None)
    ]  # fmt: skip
    return ModelCardData(
        license=texts["licence"], library_name="transformers", pipeline_tag="text-generation",
        base_model=_on_hub(links, model=True)[:1] or None, datasets=_on_hub(links, model=False) or None,
        tags=["compositionality", part.made.step], model_name=texts["title"], eval_results=measured or None,
    )  # fmt: skip


def accuracies(results: Results | None) -> list[dict[str, Any]]:
    """Return a row for each set of problems of which answers were judged."""
    rows = summary_of(results)["accuracy"] if results else []
    return [row for row in rows if row["accuracy"] is not None]


def _figure(row: Mapping[str, Any]) -> str:
    level = f", level {row['level']}" if row["level"] else ""
    interval = f"[{row['low']:.4f}, {row['high']:.4f}] for other {row['interval']}, n = {row['n_problems']}"
    return f"{TITLES.get(row['group'], row['group'])}{level}: share of right answers, 95 % interval {interval}"


def eval_results(results: Results, sources: Sequence[NamedSource]) -> dict[str, str]:
    """Return ``.eval_results/FILE.yaml`` of each problem file that is on the Hub."""
    hubs = {digest: source.hub for source in sources for digest in source.digests}
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries: dict[str, list[EvalResultEntry]] = {}
    for row in accuracies(results):
        if hub := hubs.get(results.files[row["problems"]]):
            task = "-".join([row["problems"], row["group"], f"level{row['level']}"])
            entry = EvalResultEntry(hub, task, round(row["accuracy"], 4), notes=_figure(row))
            entries.setdefault(row["problems"], []).append(entry)
    written = {name: eval_result_entries_to_yaml(of_file) for name, of_file in entries.items()}
    return {f".eval_results/{name}.yaml": yaml.safe_dump(rows, allow_unicode=True) for name, rows in written.items()}


def _dataset_data(texts: Mapping[str, Any], splits: Sequence[Split]) -> Any:
    from huggingface_hub import DatasetCardData

    configs = [
        {
            "config_name": config,
            **({"default": True} if config == splits[0].config else {}),
            "data_files": [{"split": split.name, "path": [*split.files]} for split in splits if split.config == config],
        }
        for config in dict.fromkeys(split.config for split in splits)
    ]
    return DatasetCardData(
        license=texts["licence"], pretty_name=texts["title"], task_categories=["text-generation"],
        tags=["compositionality"], configs=configs or None,
    )  # fmt: skip


def _row(split: Split) -> dict[str, Any]:
    """Return what the card says of a split."""
    tables = [*map(pq.read_table, split.files.values())]
    levels = sorted(
        {level for table in tables if "level" in table.column_names for level in pc.unique(table["level"]).to_pylist()}
    )
    return {
        "config": split.config,
        "split": split.name,
        "rows": f"{sum(table.num_rows for table in tables):,}",
        "levels": ", ".join(map(str, levels)),
        "columns": ", ".join(f"`{name}`" for name in tables[0].column_names),
        "step": split.part.made.step,
    }
