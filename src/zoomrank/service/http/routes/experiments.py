"""Routes of experiments (start, results, stop, promotion of an arm), and of copies of learners to try things with."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Path
from pydantic import ValidationError

from zoomrank import wire
from zoomrank.service.copies import Copies
from zoomrank.service.engine import Engine
from zoomrank.service.errors import MalformedError
from zoomrank.service.experiments import ArmSpec, result, summary
from zoomrank.service.http import schema
from zoomrank.service.http.fast_path import COPIES, COPY_FEEDBACK, COPY_RANK, EXPERIMENTS, PROMOTE, STOP, in_words
from zoomrank.service.http.routes import CollectionName, CopyName, refusals

ExperimentName = Annotated[schema.ExperimentName, Path()]


def add_experiments(api: FastAPI, engine: Engine) -> None:
    """Add the routes."""
    find = engine.collections.find

    async def told(name: str, experiment: str) -> dict[str, Any]:
        found = engine.experiments.find(find(name), experiment)
        await engine.write_queue.flush()
        return await asyncio.to_thread(lambda: result(found, engine.store.read.arm_visits(found.id)))

    @api.post(EXPERIMENTS.path, status_code=201, response_model=wire.ExperimentInfo, responses=refusals(409))
    async def create(asked: schema.NewExperiment, name: CollectionName) -> Any:
        """Start an experiment: visitors are split among its arms, each with its own learners."""
        arms = [ArmSpec(arm.name, arm.share, arm.settings) for arm in asked.arms]
        try:
            await engine.experiments.create(find(name), asked.name, arms)
        except ValidationError as error:
            raise MalformedError(in_words(error.errors(include_url=False, include_input=False), "settings")) from error
        return await told(name, asked.name)

    @api.get(EXPERIMENTS.path, response_model=wire.ExperimentsResponse)
    async def experiments(name: CollectionName) -> Any:
        """List the experiments of a collection, newest first."""
        return {"experiments": [summary(one) for one in engine.experiments.of(find(name))]}

    @api.get(wire.EXPERIMENT, response_model=wire.ExperimentInfo)
    async def experiment(name: CollectionName, experiment: ExperimentName) -> Any:
        """Return the results so far; they are valid whenever you look."""
        return await told(name, experiment)

    @api.post(STOP.path, response_model=wire.ExperimentInfo)
    async def stop(asked: schema.StopRequest, name: CollectionName, experiment: ExperimentName) -> Any:
        """Stop an arm, or the whole experiment. Its visitors then get the collection as it is."""
        await engine.experiments.stop(engine.experiments.find(find(name), experiment), asked.arm)
        return await told(name, experiment)

    @api.post(PROMOTE.path, response_model=wire.ExperimentInfo)
    async def promote(asked: schema.PromoteRequest, name: CollectionName, experiment: ExperimentName) -> Any:
        """End an experiment, and let an arm with all that it has learned serve the collection from now on."""
        await engine.experiments.promote(engine.experiments.find(find(name), experiment), asked.arm)
        return await told(name, experiment)

    @api.delete(wire.EXPERIMENT, response_model=wire.RemovedExperiment)
    async def remove(name: CollectionName, experiment: ExperimentName) -> Any:
        """Delete an ended experiment, with the learners of arms that serve no visitors."""
        await engine.experiments.remove(engine.experiments.find(find(name), experiment))
        return {"name": experiment, "status": "removed"}


# Routes of copies: throwaway learners that rank and learn in isolation.


def add_copies(api: FastAPI, engine: Engine, copies: Copies) -> None:
    """Add the routes."""

    @api.post(COPIES.path, status_code=201, response_model=wire.CopyResponse)
    async def make(asked: schema.CopyRequest, name: CollectionName) -> Any:
        """Copy what a query has learned into a learner of its own, which is dropped when it is no longer used."""
        served = engine.collections.find(name)
        copy = await copies.make(served, served.query(asked.query))
        return {"copy": copy.name, "query": copy.query, "impressions": copy.learner.counts.impressions}

    @api.post(COPY_RANK.path, response_model=wire.RankResponse)
    async def rank(asked: schema.CopyRankRequest, copy: CopyName) -> Any:  # noqa: ARG001  (no options yet)
        """Rank with a copy, as the query itself would. The impression is valid for this copy only."""
        found = copies.find(copy)
        impression, documents = copies.rank(found)
        return {"impression": impression, "query": found.query, "documents": documents}

    @api.post(COPY_FEEDBACK.path, response_model=wire.BatchResponse)
    async def feedback(asked: schema.BatchRequest, copy: CopyName) -> Any:
        """Teach a copy; each item succeeds or fails by itself."""
        told = [(one.impression, one.answer) for one in asked.feedback]
        return {"results": copies.feedback(copies.find(copy), told)}
