"""`zoomrank judge`: estimate from a log with propensities how another ranking or ranker would have done."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoomrank.cli.arguments import Commands, add_command, add_number, add_seed, add_unknown, listed, parameter
from zoomrank.errors import CannotTellError, ParameterError

if TYPE_CHECKING:
    from zoomrank.judging import ImpressionLog, Judgment
    from zoomrank.spaces import DocumentTree

_ESTIMATORS = ("doubly-robust", "self-normalised", "weighted", "self-normalised-doubly-robust")
_ABOUT = f"""Estimate from a log how many visitors another ranking or ranker would have
satisfied, with a 95 % interval, beside what was shown; or explain why
the log cannot tell. The log must have the propensities of its rankings, and
these must have been randomised (the setting explore of a collection).

log:         JSON lines or Parquet, as zoomrank export writes them: query,
             shown, propensity, slot or clicked; outcome, looked_at and void
             are optional
--ranking:   a table with columns query and shown (a list of ids, from the top),
             or query and document, a row each; without query, for all queries
--ranker:    a saved ranker, for all queries, or for --query; it
             does not learn meanwhile
--replay:    a ranker that learns from those impressions that it might have
             shown itself: for a slot or two over few documents
--tree:      documents, as for zoomrank inspect; their similarity is used by
             estimators with a model, and by a saved or new ranker
{listed("estimators:", _ESTIMATORS)}"""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "judge",
        _ABOUT,
        "zoomrank judge log.jsonl --ranking better.tsv",
        "zoomrank judge log.parquet --ranking better.jsonl --by-query --json",
        "zoomrank judge log.jsonl --ranker owls.ranker --query owls --tree shop.zoom",
        "zoomrank judge log.jsonl --replay ZoomRank --tree shop.zoom --slots 1",
        extras=("documents",),
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="the log")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--ranking", type=Path, metavar="FILE", help="a ranking for each query, or one for all")
    asked.add_argument("--ranker", type=Path, metavar="FILE", help="a saved ranker, in its current state")
    asked.add_argument("--replay", metavar="RANKER", help="a ranker that learns from the log")
    parser.add_argument("--tree", type=Path, metavar="FILE", help="the documents and their similarity")
    add_number(parser, "--slots", None, "judge only this many documents from the top (default: all)")
    parser.add_argument("--set", type=parameter, action="append", default=[], metavar="NAME=VALUE", help="of --replay")
    parser.add_argument(
        "--estimator",
        choices=_ESTIMATORS,
        default=_ESTIMATORS[0],
        metavar="NAME",
        help=f"estimator (default: {_ESTIMATORS[0]})",
    )
    parser.add_argument("--query", metavar="QUERY", help="judge by the impressions of this query only")
    parser.add_argument("--by-query", action="store_true", help="also judge each query separately")
    add_unknown(parser, "impressions whose propensities are unknown")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_seed(parser, 1)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read the files, judge, and print the result."""
    from zoomrank.cli.inputs import read_collection
    from zoomrank.judging import read_log

    tree = None if options.tree is None else read_collection(options.tree).tree
    log = read_log(options.log)
    log = log if options.query is None else log.of_query(options.query)
    if options.replay is not None:
        found = _replayed(options, log, tree)
        print(json.dumps(found.as_dict()) if options.json else found)
    else:
        _judge(options, log, tree)


def _judge(options: argparse.Namespace, log: ImpressionLog, tree: DocumentTree | None) -> None:
    from zoomrank import load
    from zoomrank.judging import judge, judge_by_query, read_rankings

    target: Any = load(options.ranker, tree) if options.ranker else read_rankings(options.ranking)
    how: dict[str, Any] = {name: getattr(options, name) for name in ("slots", "estimator", "unknown")} | {"tree": tree}
    found = judge(log, target, **how)
    queries = judge_by_query(log, target, **how) if options.by_query else {}
    if options.json:
        each = {query: _plain(one) for query, one in queries.items()}
        print(json.dumps({**found.as_dict(), **({"queries": each} if options.by_query else {})}, ensure_ascii=False))
        return
    print(found)
    for query, one in queries.items():
        print(f"\n{query or 'without a query'}:\n{one}")


def _plain(one: Judgment | CannotTellError) -> dict[str, Any]:
    return {"cannot_tell": str(one)} if isinstance(one, CannotTellError) else one.as_dict()


def _replayed(options: argparse.Namespace, log: ImpressionLog, tree: DocumentTree | None) -> Any:
    from zoomrank.judging import replay
    from zoomrank.lab.registry import RANKERS

    if tree is None:
        raise ParameterError("--replay needs the documents: give --tree FILE.")
    if options.replay not in RANKERS:
        raise ParameterError(f"Unknown ranker {options.replay!r}; choose one of {', '.join(RANKERS)}.")
    kind, given, slots = RANKERS[options.replay], dict(options.set), options.slots or log.slots
    return replay(log, lambda: kind(tree, slots, seed=options.seed, **given), seed=options.seed)
