r"""Write the record of a study, to be committed: a folder without host names or paths, whole or not at all.

Reads the results.parquet of all replicates (of several evaluations the study's own first) and, where named, the
claims.json of claims, a figure, YAML files, the times of its steps and run folders.
Writes in OUTPUT: record.json (command, code, versions, hardware, settings, times, estimates, claims), command, versions
(as pip reads them), metrics.jsonl (every step of every run), results.parquet (all replicates), figure.png, README.md.

    S=results/composition
    compositionality write_record results=[accuracy/seed0:$S/seed0/section41_42/results.parquet,...] \
        claims=$S/claims.json machine=$S/section41_42/machine.json \
        output=results/records/mine command="'SEEDS=3 bash bash/quickstart.sh'" \
        figure=$S/section41_42/accuracy_by_level.png times=$S/section41_42/times.tsv \
        config=[profile:compositionality/config/profile/tiny.yaml] \
        runs=[seed0-rl-level2:checkpoints/composition/seed0/stage2-rl-level2,...]

registration=FOLDER adds what was registered, its hash and commit; refused if the commit does not hold it.
A record that is there is kept; one of another run is replaced only with --force. What it means goes into notes=[...].
"""

from compositionality.config.profile import EntryPoint
from compositionality.report.record import RecordSettings, check, write_record

VERB = EntryPoint(RecordSettings, write_record, check)
