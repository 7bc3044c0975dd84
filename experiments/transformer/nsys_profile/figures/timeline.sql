-- figure: lanes
-- title: Profiling: timeline of one step
-- caption: A recorded step of each implementation: phases, layers and their parts, operator calls on the host and, on a
--   GPU, the kernels of each stream.
-- experiment: nsys_profile
-- x: time|ms|linear
-- y: lane|1|text
-- end: until
-- series: kind
-- panel: model, context, precision, implementation, device
-- fills: b
-- note: With names, for ui.perfetto.dev, of `host_eager` for example: `syslab query "SELECT a.content FROM artifact a
--   JOIN v_newest t ON t.attempt_id = a.attempt_id WHERE t.experiment = 'nsys_profile' AND
--   t.implementation = 'host_eager' AND a.kind = 'timeline' ORDER BY t.run_order DESC LIMIT 1" --to raw -o step.json`.
WITH chosen AS (
  SELECT v.attempt_id, v.params, v.implementation, v.device, v.run_uid,
         row_number() OVER (PARTITION BY v.device, v.implementation
                                ORDER BY p.value, v.params ->> '$.context',
                                         v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
backward AS MATERIALIZED (  -- once an attempt: a join would look through all its spans for each of them
  SELECT s.attempt_id, min(s.start_ns) AS start_ns
    FROM chosen c
    JOIN span s ON s.attempt_id = c.attempt_id AND s.category = 'phase' AND s.name = 'backward'
   WHERE c.place = 1
   GROUP BY s.attempt_id
)
SELECT 1e-6 * s.start_ns AS time, 1e-6 * s.end_ns AS until,
       CASE WHEN s.track <> 'host' THEN s.track WHEN s.category = 'kernel' THEN 'calls'
            WHEN s.category = 'part' THEN 'parts'
            WHEN s.category = 'layer' THEN 'layers' ELSE 'phases' END AS lane,
       CASE WHEN s.category = 'layer' THEN iif(s.start_ns >= b.start_ns, 'backward', 'forward')
            WHEN s.category = 'phase' THEN s.name
            WHEN s.name = 'gemm' OR s.name LIKE '%.gemm' THEN 'matrix products'
            WHEN s.name LIKE 'attention%' OR s.name = 'attn' THEN 'attention'
            WHEN s.name IN ('optimizer', 'adamw', 'global_norm', 'clip') THEN 'optimizer'
            ELSE 'others' END AS kind,
       c.params ->> '$.model' AS model, c.params ->> '$.context' AS context,
       c.params ->> '$.precision' AS precision, c.implementation,
       c.device, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN span s ON s.attempt_id = c.attempt_id AND s.category <> 'scope'
  LEFT JOIN backward b ON b.attempt_id = c.attempt_id
 WHERE c.place = 1
 ORDER BY c.implementation, CASE lane WHEN 'phases' THEN 0 WHEN 'layers' THEN 1 WHEN 'parts' THEN 2 WHEN 'calls' THEN 3
                                      ELSE 4 END, s.track,
          CASE kind WHEN 'forward' THEN 0 WHEN 'backward' THEN 1 WHEN 'optimizer' THEN 2 WHEN 'matrix products' THEN 3
                    WHEN 'attention' THEN 4 ELSE 5 END, s.start_ns;
