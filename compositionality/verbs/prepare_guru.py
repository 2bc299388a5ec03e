"""Make rows of several domains ready for RL: check, filter by pass rate, mix, order, hold out, cut subsets.

Reads parquet files with guru's columns (data_source, prompt, reward_model, extra_info as a struct or compressed, pass
rates) or verl's. Writes the folder OUTPUT: train.parquet, holdout.parquet, subset-N.parquet in verl's RL schema,
first.parquet and rest.parquet, refused.csv with the rows that cannot be asked or judged, and a manifest. Shows a row of
each domain. With report_only=true it writes nothing and prints, by data source, rows, scores of gold answers, repeated
prompts and lengths.

    compositionality prepare_guru files=[math__combined_54.4k.parquet] output=data/math holdout=500 order=easy_to_hard
    compositionality prepare_guru files=[A.parquet,B.parquet] output=data/mix rows_per_domain=1000 max_pass_rate=0.9
    compositionality prepare_guru files=[FOLDER] output=data/math holdout=500 domains=[math,code] train_domains=[math]
    compositionality prepare_guru files=[FOLDER] report_only=true
    compositionality prepare_guru files=[A.parquet] output=data/reuse subsets=[1000,5000] nested=true
"""

from compositionality.config.profile import EntryPoint
from compositionality.domains.guru import PrepareGuruSettings, check, prepare_guru

VERB = EntryPoint(PrepareGuruSettings, prepare_guru, lambda settings: check(settings, dry=True))
