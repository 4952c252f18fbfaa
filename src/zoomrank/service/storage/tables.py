"""The tables of a store, in SQL that SQLite and PostgreSQL both understand once their words for types are put in.

| table | what |
|---|---|
| about | the version of this layout, the secret that signs impressions |
| collections | name and settings; of an arm of an experiment, whose documents it has; who serves it now |
| experiments | what is compared with what, since when |
| arm_visits | what became of those who count in an experiment, per arm and minute in which they came |
| visitors | who has been counted in an experiment, as they came (sorted, each would be in another page) |
| editions | what a collection became by each change of its documents; the digest of its file, where that is kept |
| contents | files of editions, in pieces; where the edition has no digest, it never was complete |
| learners | the query of each learner, what it said of itself, how often it was asked with what success (as of late) |
| snapshots | the newest of each learner |
| bases | each learner whose log has lost its beginning, as it was there |
| reports | what each learner has told its neighbours, newest only |
| events | the log: append-only, in the order in which learners noted it |
| activity | what became of impressions, per collection and ten seconds |
| folded | what of that the log has no lines of any more, since their queries were removed, or they were too old |

The log has room for one showing and one end of each impression, and for one line each that it was seen and that it is
void, and of each note: what would apply a click twice is refused, whatever brought it about. That a learner moves on to
another edition stands before an impression, too, and may do so again and again.

Several services may count at once (`leases`): each in rows of its own, by its number as a writer, so that none waits
for another. One that is alone has the number 0.

What is older than its collection keeps leaves the log; then the learner as it was there is kept as its base, and the
log goes on from that. Counts of days that are long gone (`DAY` steps) are kept by the day.
"""

from __future__ import annotations

from collections.abc import Mapping

from zoomrank.service.storage.outcomes import MOVED, SEEN, VOIDED, WAITING

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
    """What makes the other tables, where they are not there yet."""
    return _OTHERS.format(**types).split(";")
