"""Rivals from the literature that the library does not ship: for the studies, and as recipes of one's own.

`research.rivals.hier_ts:HierTS` names one in `zoomrank evaluate` and `zoomrank simulate`, from a checkout. Each file is
an algorithm with its paper. All but `SubsampledGreedy` go through all documents in every visit: they are for lists of
at most a few hundred documents. The defaults are the constants that were found best on short lists (`RIVALS` in
`research/studies/questions.py`), not those of the papers.
"""
