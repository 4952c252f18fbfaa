"""Contextual zooming, the slot learner of RankContextZoom (Algorithm 4 of the paper). Read in this order:

`pairs` zoom trees over pairs of a subtree and a context node · `walk` choosing a pair · `learner` the bandit itself.
"""
