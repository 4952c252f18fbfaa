"""Tables of a store, in SQL that SQLite and PostgreSQL share once their names of types are filled in.

| table | content |
|---|---|
| about | the version of this layout, the secret that signs impressions |
| collections | name and settings; of an arm of an experiment, its home collection; which arm serves it now |
| experiments | arms and their shares, start and end |
| arm_visits | outcomes of visitors who count in an experiment, per arm and minute of arrival |
| visitors | visitors counted in an experiment, appended unsorted (sorted, each insert would touch another page) |
| editions | versions of a catalogue: the changes, and the digest of its file where that is kept |
| contents | files of catalogue versions, in chunks; without a digest in `editions` a file is incomplete |
| learners | the query of each learner, its path or vector, and counts for lists (which may lag behind) |
| snapshots | the newest of each learner |
| bases | state of each learner whose oldest events were removed, as of that point |
| reports | the latest report of each learner to its neighbours |
| events | the log: append-only, in the order in which learners applied it |
| activity | outcome counts per collection and ten seconds |
| folded | the part of `activity` whose events have left the log, with their query or by age |

A unique index allows one shown and one end event per impression, one each for seen and void, and one of each note:
applying a click twice fails, whatever the cause. Moves to another catalogue version precede an impression and may
repeat.

Several replicas count at once (`leases`), each in rows of its own, by its number as a writer, so that none waits for
another. A single service has the number 0.

Events beyond the retention time leave the log; the learner as of that point is kept as its base, from which the log
continues. Old counts are merged by day (`DAY` steps).
"""

from __future__ import annotations

from collections.abc import Mapping

from zoomrank.service.storage.events import MOVED, SEEN, VOIDED, WAITING

LAYOUT = 8

ABOUT = "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)"

_OTHERS = f"""
CREATE TABLE IF NOT EXISTS collections (
    id {{whole}} PRIMARY KEY, name TEXT NOT NULL UNIQUE, created {{real}} NOT NULL, settings TEXT NOT NULL,
    home {{whole}}, server {{whole}});
CREATE TABLE IF NOT EXISTS experiments (
    id {{whole}} PRIMARY KEY, collection {{whole}} NOT NULL, name TEXT NOT NULL, created {{real}} NOT NULL,
    ended {{real}}, content TEXT NOT NULL, UNIQUE (collection, name));
CREATE TABLE IF NOT EXISTS arm_visits (
    experiment {{whole}} NOT NULL, arm {{whole}} NOT NULL, minute {{whole}} NOT NULL, outcome {{whole}} NOT NULL,
    count {{whole}} NOT NULL, writer {{whole}} NOT NULL, PRIMARY KEY (experiment, arm, minute, outcome, writer));
CREATE TABLE IF NOT EXISTS visitors (
    experiment {{whole}} NOT NULL, visitor {{bytes}} NOT NULL);
CREATE INDEX IF NOT EXISTS visitors_experiment ON visitors (experiment);
CREATE TABLE IF NOT EXISTS editions (
    collection {{whole}} NOT NULL, number {{whole}} NOT NULL, created {{real}} NOT NULL, changes {{bytes}}, digest TEXT,
    PRIMARY KEY (collection, number));
CREATE TABLE IF NOT EXISTS contents (
    collection {{whole}} NOT NULL, edition {{whole}} NOT NULL, part {{whole}} NOT NULL, bytes {{bytes}} NOT NULL,
    PRIMARY KEY (collection, edition, part));
CREATE TABLE IF NOT EXISTS learners (
    id {{whole}} PRIMARY KEY, collection {{whole}} NOT NULL, query TEXT NOT NULL, created {{real}} NOT NULL,
    about TEXT, edition {{whole}} NOT NULL, impressions {{whole}} NOT NULL DEFAULT 0,
    satisfied {{whole}} NOT NULL DEFAULT 0, answered {{whole}} NOT NULL DEFAULT 0, recent {{real}});
CREATE UNIQUE INDEX IF NOT EXISTS learners_query ON learners (collection, query);
CREATE INDEX IF NOT EXISTS learners_impressions ON learners (collection, impressions);
CREATE INDEX IF NOT EXISTS learners_once ON learners (collection, created) WHERE impressions <= 1;
CREATE TABLE IF NOT EXISTS snapshots (
    learner {{whole}} PRIMARY KEY, edition {{whole}} NOT NULL, event {{whole}} NOT NULL, first {{whole}} NOT NULL,
    waiting {{whole}} NOT NULL, counts TEXT NOT NULL, content {{bytes}} NOT NULL);
CREATE TABLE IF NOT EXISTS bases (
    learner {{whole}} PRIMARY KEY, edition {{whole}} NOT NULL, event {{whole}} NOT NULL, first {{whole}} NOT NULL,
    waiting {{whole}} NOT NULL, counts TEXT NOT NULL, content {{bytes}} NOT NULL);
CREATE TABLE IF NOT EXISTS reports (
    learner {{whole}} PRIMARY KEY, answers {{whole}} NOT NULL, content {{bytes}} NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    id {{whole}} PRIMARY KEY, learner {{whole}} NOT NULL, number {{whole}} NOT NULL, time {{real}} NOT NULL,
    outcome {{whole}} NOT NULL, shown {{bytes}});
CREATE UNIQUE INDEX IF NOT EXISTS events_impression ON events (
    learner, number, (CASE WHEN outcome > {WAITING} THEN -outcome ELSE CASE outcome WHEN {WAITING} THEN 0
    WHEN {SEEN} THEN 1 WHEN {VOIDED} THEN 2 WHEN {MOVED} THEN 16 + id ELSE 3 END END));
CREATE TABLE IF NOT EXISTS activity (
    collection {{whole}} NOT NULL, step {{whole}} NOT NULL, outcome {{whole}} NOT NULL, count {{whole}} NOT NULL,
    writer {{whole}} NOT NULL, PRIMARY KEY (collection, step, outcome, writer));
CREATE TABLE IF NOT EXISTS folded (
    collection {{whole}} NOT NULL, step {{whole}} NOT NULL, outcome {{whole}} NOT NULL, count {{whole}} NOT NULL,
    writer {{whole}} NOT NULL, PRIMARY KEY (collection, step, outcome, writer))
"""


def statements(types: Mapping[str, str]) -> list[str]:
    """Return the statements that create the other tables if missing."""
    return _OTHERS.format(**types).split(";")
