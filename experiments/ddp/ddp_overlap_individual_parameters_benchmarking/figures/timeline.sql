-- figure: lanes
-- title: Naive DDP and DDP with overlap
-- caption: Rank 0 in the last measured step of each strategy: compute phases above, all-reduces below, by CUDA events
--   (on a CPU, by the clock).
-- experiment: ddp_overlap_individual_parameters_benchmarking
-- x: time|ms|linear
-- y: lane|1|text
-- end: until
-- series: kind
-- panel: strategy, model, context, ranks, device
-- fills: b
WITH chosen AS (
  SELECT v.attempt_id, v.params, v.world_size, v.device, v.run_uid,
         v.comparability_key, v.params ->> '$.model' AS model,
         row_number() OVER (PARTITION BY v.comparability_key, v.params ->> '$.strategy', v.params ->> '$.model'
                                ORDER BY v.experiment <> ?1, coalesce(v.params ->> '$.wire', 'own') <> 'own',
                                         p.value, v.world_size, v.params ->> '$.context', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters' AND p.rank = 0
   WHERE v.experiment IN (?1, 'naive_ddp_benchmarking', 'ddp_bucketed_benchmarking')
     AND v.is_good AND v.params ->> '$.strategy' IN ('naive', 'overlap')
),
-- Of each model one machine, that which has both strategies if one has.
told AS (
  SELECT *, dense_rank() OVER (PARTITION BY model ORDER BY strategies DESC, comparability_key) AS machine
    FROM (SELECT *, count(*) OVER (PARTITION BY model, comparability_key) AS strategies FROM chosen WHERE place = 1)
)
SELECT 1e-6 * s.start_ns AS time, 1e-6 * s.end_ns AS until, s.track AS lane,
       iif(s.track = 'compute', s.name, 'all-reduce') AS kind, c.params ->> '$.strategy' AS strategy,
       c.params ->> '$.model' AS model, c.params ->> '$.context' AS context,
       c.world_size AS ranks, c.device, 'ok' AS status, c.run_uid
  FROM told c
  JOIN span s ON s.attempt_id = c.attempt_id AND s.rank = 0
 WHERE c.machine = 1
 ORDER BY model DESC, strategy, lane DESC, s.start_ns;
