r"""A record of a study to commit: command, code and package versions, hardware, settings, times, table, claims.

Reads the seeds.json of examples/summarise_seeds.py and, where named, the claims.json of examples/claims.py,
configuration files, files of times (JSON, or lines that end in seconds) and run folders (their metrics.jsonl). Writes
OUTPUT, one JSON without host names or paths.

    python examples/write_record.py seeds=results/tiny/section41_42/seeds.json claims=results/tiny/claims.json \
        output=results/records/tiny.json \
        command="'SEEDS=3 bash bash/quickstart.sh'" config=[profile:compositionality/config/profile/tiny.yaml] \
        times=[all:results/tiny/section41_42/times.tsv] runs=[rl-level2:checkpoints/tiny/stage2-rl-level2]

registration=FOLDER adds what was registered, its hash and commit; refused if the commit does not hold it.
An existing record is kept; one of another run is replaced only with --force.
"""

from compositionality.config.cli import run
from compositionality.report.record import RecordSettings, is_there, write_record

if __name__ == "__main__":
    run(RecordSettings, write_record, __doc__, check=is_there)
