"""A finished report as one run in wandb: its page, figures and tables, and what is decided of the claims."""

import base64
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from compositionality.data.artefact import file_hash, manifest_path
from compositionality.evaluate.table import RESULTS
from compositionality.report.page.inputs import CLAIMS, Inputs
from compositionality.train.wandb_artifacts import models_in, send_artifacts
from compositionality.train.wandb_runs import open_wandb, or_left_out, wandb_is_usable


def send_report(inputs: Inputs) -> None:
    """Send the report of these inputs, where wandb can be used; the same report is the same run."""
    settings = inputs.settings
    output, claims = settings.output, settings.study / CLAIMS
    if not wandb_is_usable(os.environ):
        return
    run = open_wandb(output, "report", asdict(settings), file_hash(manifest_path(output))[:16])
    if run is None:
        return
    with or_left_out():
        send(run, output, claims)
        send_artifacts(run, used_by(inputs), made=[claims, output])
        run.finish()


def used_by(inputs: Inputs) -> list[Path]:
    """Return the tables that a report shows, and the models of the runs that it reports."""
    runs = [path.parent for name, path in inputs.files.items() if name.endswith("/recipe.json")]
    bases = [path.parent for name, path in inputs.files.items() if name.endswith("/base/manifest.json")]
    tables = [path for path in inputs.files.values() if path.name == RESULTS]
    return [*tables, *bases, *(model for run in runs for model in models_in(run))]


def send(run: Any, output: Path, claims: Path) -> None:
    """Send what lies in the folder of a report, and the claims of its study if it has some."""
    import wandb

    sent: dict[str, Any] = {"page": wandb.Html((output / "index.html").read_text(), inject=False)}
    for path in sorted(output.glob("figures/*.png")):  # wandb.Image needs pillow, which nothing else does
        pixels = base64.b64encode(path.read_bytes()).decode()
        sent[f"figures/{path.stem}"] = wandb.Html(f'<img src="data:image/png;base64,{pixels}">', inject=False)
    tables = {path.stem: pd.read_csv(path) for path in sorted(output.glob("tables/*.csv"))}
    if claims.is_file():
        content = json.loads(claims.read_text())
        listed = [*content["claims"], *content["controls"]]
        rows = [
            {"claim": claim["claim"], "text": claim["text"], "claim_decision": claim["decision"], **row}
            for claim in listed
            for row in claim["comparisons"]
        ]
        tables["claims"] = pd.DataFrame(rows)
        run.summary.update({f"claims/{claim['claim']}": str(claim["decision"]) for claim in listed})
        estimates = {row["comparison"]: row["difference"] for claim in listed for row in claim["comparisons"]}
        run.summary.update({f"estimates/{name}": value for name, value in estimates.items() if value is not None})
    for name, table in tables.items():
        sent[f"tables/{name}"] = wandb.Table(dataframe=table.map(plain).astype(object).where(table.notna(), None))
    run.log(sent)


def plain(value: Any) -> Any:
    """Return a cell as a wandb table takes it."""
    return json.dumps(value) if isinstance(value, list | dict) else value
