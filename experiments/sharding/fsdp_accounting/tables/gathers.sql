-- title: FSDP: all-gathers of a step
-- caption: Rank 0 in the last measured step: when a unit was gathered, first used, and how long compute waited for it
--   (`exposed`). Units are named by their first weight; `backward` includes recomputed layers.
-- experiment: fsdp_accounting
-- fills: b
-- columns: model|1|s|left; ranks|1|d|right; backend?|1|code|left; wire?|1|s|left; granularity|1|s|left;
--   context?|1|d|right; precision?|1|s|left; device?|1|s|left; pass|1|s|left; unit|1|code|left; start|ms|.4g|right;
--   ended as end|ms|.4g|right; first_use as first use|ms|.4g|right; exposed|ms|.3g|right
WITH chosen AS (
  SELECT v.attempt_id, v.params, v.world_size, v.backend, v.device, v.run_uid,
         row_number() OVER (PARTITION BY v.comparability_key, v.params, v.world_size ORDER BY v.attempt_uid) AS place
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good
), of AS (
  SELECT s.*, row_number() OVER (PARTITION BY s.attempt_id, s.track, s.category, s.name ORDER BY s.start_ns) AS place
    FROM span s
   WHERE s.rank = 0 AND s.track IN ('gather', 'wait')
)
SELECT c.params ->> '$.model' AS model, c.world_size AS ranks, c.backend,
       coalesce(c.params ->> '$.wire', 'own') AS wire, c.params ->> '$.granularity' AS granularity,
       c.params ->> '$.context' AS context, c.params ->> '$.precision' AS "precision",
       c.device, g.category AS pass, g.name AS unit,
       1e-6 * g.start_ns AS start, 1e-6 * g.end_ns AS ended, 1e-6 * w.end_ns AS first_use,
       1e-6 * (w.end_ns - w.start_ns) AS exposed, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN of g ON g.attempt_id = c.attempt_id AND g.track = 'gather'
  JOIN of w ON w.attempt_id = c.attempt_id AND w.track = 'wait'
           AND w.name = g.name AND w.category = g.category AND w.place = g.place
 WHERE c.place = 1
 ORDER BY model, ranks, backend, wire <> 'own', wire, granularity DESC, context, "precision", g.start_ns;
