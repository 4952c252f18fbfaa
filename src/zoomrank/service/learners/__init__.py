"""Learners of the service, one for each query, and their log.

`query_learner` one learner · `limits` feedback deadlines and the quota of new queries · `learner_events` learners in
memory, and their log · `log_audit` a learner as its log gives it ·
`void` taking impressions back · `retention` dropping old events · `housekeeping` periodic work.
"""
