r"""The report of a study: one HTML page that needs nothing else, its figures as SVG, PNG and PDF, its tables as CSV.

Reads STUDY/section41_42/seeds.json and, as far as they are there: claims.json, section44/passk.json, section45/,
data_audit.json, the rollouts and times in STUDY; section43/seeds.json in countdown=; metrics and settings of the
training runs in checkpoints=; problem files in data=. What is not there is named, with the command that makes it.
Writes OUTPUT/index.html, OUTPUT/figures/, OUTPUT/tables/ and OUTPUT/manifest.json; prints the page's path.

    python examples/report.py study=results/tiny output=results/tiny/report countdown=results/tiny-countdown \
        checkpoints=checkpoints/tiny data=data/tiny

A report follows its inputs: run again, it is written anew if one of them has changed. --check writes nothing: it exits
with code 2 and names the file if a figure, a table or the page is altered, or no longer what the inputs say.
"""

from compositionality.config.cli import run
from compositionality.report.page.build import report
from compositionality.report.page.inputs import ReportSettings

if __name__ == "__main__":
    run(ReportSettings, report, __doc__)
