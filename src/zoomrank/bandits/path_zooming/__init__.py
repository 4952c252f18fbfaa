"""Path zooming, the slot learner of ZoomRank. Read in this order:

`state` counts of visits along the root paths of documents · `bounds` records and upper bounds kept from these counts ·
`walk` choosing a document by them, and exchanging two shown ones · `learner` the bandit itself, with the idea ·
`loans` the same learner with visits borrowed from similar queries.
"""
