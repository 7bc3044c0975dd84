-- A row an implementation of ours in a run and an experiment of its plan, with all facts that its program knew of it
-- (table rung_fact) as one object of texts, `facts`, and those that queries choose by as columns. `is_general`: ours
-- (neither a yardstick nor an oracle), no variant of another one, and for any newer GPU than the oldest that it runs
-- on. Join it by run_uid, experiment and implementation with the row that is shown: then the facts are those of the
-- program that measured.
CREATE VIEW v_rung AS
SELECT r.uid AS run_uid, f.experiment, f.rung AS implementation, json_group_object(f.fact, f.value) AS facts,
       max(f.value) FILTER (WHERE f.fact = 'device') AS device,
       max(f.value) FILTER (WHERE f.fact = 'dtypes') AS dtypes,
       max(f.value) FILTER (WHERE f.fact = 'works') AS works,
       count(*) FILTER (WHERE f.fact = 'tf32') > 0 AS tf32,
       count(*) FILTER (WHERE f.fact IN ('role', 'variant_of', 'maximum_sm')) = 0 AS is_general
  FROM rung_fact f
  JOIN run r ON r.id = f.run_id
 GROUP BY f.run_id, f.experiment, f.rung;
