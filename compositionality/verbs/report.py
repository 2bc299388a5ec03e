r"""The report of a study: one HTML page that needs nothing else, its figures as PNG, its tables as CSV.

Reads section41_42/results.parquet of every seed (STUDY/seed0, STUDY/seed1, …; seeds=[seed0] those only) and, where they
exist: claims.json, data_audit.json, rollouts and times in STUDY; section44/ and section45/ of every seed; section43/ of
every seed in countdown=; metrics and settings of every seed's training runs in checkpoints=; problem files and the
rollouts of RFT in data=. The page names what is missing and the command that makes it. Writes OUTPUT/index.html,
OUTPUT/finding.txt (the finding in four lines), OUTPUT/figures/, OUTPUT/tables/ and OUTPUT/manifest.json; prints the
page's path.

    compositionality report study=results/composition output=results/composition/report \
        countdown=results/countdown checkpoints=checkpoints/composition data=data/composition

figures=pdf (or svg) writes the figures so, for a paper. arms={my-arm: {title: My arm, colour: "#0072B2"}} gives an arm
its title and colour; other arms need nothing.

A report follows its inputs: run again, it is written anew if one of them has changed. --check writes nothing: it exits
with code 2 and names the file if a figure, a table or the page is altered or stale.
"""

from compositionality.config.profile import EntryPoint
from compositionality.report.page.build import check_inputs, report
from compositionality.report.page.inputs import ReportSettings

VERB = EntryPoint(ReportSettings, report, check_inputs)
