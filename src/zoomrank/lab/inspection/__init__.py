"""Inspection of a collection: whether its distances agree with labels or clicks."""
