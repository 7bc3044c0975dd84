-- figure: lanes
-- title: FSDP: all-gathers and compute
-- caption: Rank 0 in the last measured step: compute phases, all-gathers, and, below, waits of compute for them of 0.02
--   ms and more (`wait`), by events in the step.
-- experiment: fsdp_accounting
-- x: time|ms|linear
-- y: lane|1|text
-- end: until
-- series: kind
-- panel: granularity, model, context, ranks, device
-- fills: b
WITH chosen AS (
  SELECT v.attempt_id, v.params, v.world_size, v.device, v.run_uid,
         row_number() OVER (PARTITION BY v.comparability_key
                                ORDER BY v.params ->> '$.granularity' <> 'layer',
                                         coalesce(v.params ->> '$.wire', 'own') <> 'own', p.value,
                                         v.world_size, v.params ->> '$.context', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters' AND p.rank = 0
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT 1e-6 * s.start_ns AS time, 1e-6 * s.end_ns AS until, replace(s.track, 'gather', 'all-gather') AS lane,
       CASE s.track WHEN 'compute' THEN s.name WHEN 'gather' THEN 'all-gather' ELSE s.track END AS kind,
       c.params ->> '$.granularity' AS granularity,
       c.params ->> '$.model' AS model, c.params ->> '$.context' AS context,
       c.world_size AS ranks, c.device, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN span s ON s.attempt_id = c.attempt_id AND s.rank = 0
 WHERE c.place = 1 AND (s.track <> 'wait' OR s.end_ns - s.start_ns >= 20000)
 -- In the order, and so in the colours, of the timelines of DDP: compute first.
 ORDER BY granularity DESC, CASE s.track WHEN 'compute' THEN 0 WHEN 'gather' THEN 1 ELSE 2 END, s.start_ns;
