"""Rows on disk: schemas, atomic files, manifests, the split ledger and the audits."""
