"""Hashes of nodes: 64 bits for each, added up to name a set of nodes regardless of order."""

import numpy as np

from zoomrank.compiled import Scalar, inlined


@inlined
def hash64(value: Scalar) -> Scalar:
    """Hash 64 bits (a finaliser in the style of splitmix64): sums of hashes name multisets."""
    bits = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
