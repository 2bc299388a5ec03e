"""Make a small sample of every domain (math, code, logic, simulation, STEM, tables) in guru's columns.

Reads nothing; no download is needed: problems, gold answers and reference programs are generated. Writes the folder
OUTPUT, one parquet file for each domain, and a manifest. There are no pass rates: no model was asked.

    compositionality make_domain_sample output=data/domains/raw
    compositionality make_domain_sample output=data/domains/raw_test split=test seed=2027 count=100
"""

from compositionality.config.profile import EntryPoint
from compositionality.domains.sample import DomainSampleSettings, check, make_domain_sample

VERB = EntryPoint(DomainSampleSettings, make_domain_sample, check)
