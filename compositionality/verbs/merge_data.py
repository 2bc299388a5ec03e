"""Join data sets: problem files, SFT files, or folders of train.parquet and test.parquet.

Reads the inputs, in order. Writes one file (or one folder, if the inputs are folders) and its manifest.

    compositionality merge_data inputs=[A.parquet,B.parquet] output=MERGED.parquet

Columns must agree. A prompt that two inputs share is an error unless allow_shared_prompts=true; one that would be
in both train and test always is.
"""

from compositionality.config.profile import EntryPoint
from compositionality.rft.tables import MergeSettings, check_merge, merge_data

VERB = EntryPoint(MergeSettings, merge_data, check_merge)
