"""Join data sets: problem files, SFT files, or folders of train.parquet and test.parquet.

Reads the inputs, in order. Writes one file (or one folder, if the inputs are folders) and its manifest.

    python examples/merge_data.py inputs=[A.parquet,B.parquet] output=MERGED.parquet

Columns must agree. A prompt that two inputs share is an error unless allow_shared_prompts=true; one that would be
in both train and test always is.
"""

from compositionality.config.cli import run
from compositionality.rft.tables import MergeSettings, check_merge, merge_data

if __name__ == "__main__":
    run(MergeSettings, merge_data, __doc__, check=check_merge)
