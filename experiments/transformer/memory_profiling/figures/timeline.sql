-- figure: areas
-- title: Memory profiling: live memory over time
-- caption: Live bytes by category of each pass that the largest model completed at one context, over the host's time: kernels are queued ahead, so
--   phases are not as long here as the device takes for them.
-- experiment: memory_profiling
-- x: host time|ms|linear
-- y: live|MiB|linear
-- series: category
-- panel: pass, model, context, precision, implementation, device
-- fills: a
-- note: Host time; on a GPU kernels are queued ahead, and memory is allocated and freed in that order.
WITH passes AS (
  SELECT v.*, p.value AS parameters, json_array(json_remove(v.params, '$.pass'), v.world_size, v.protocol, v.comparability_key) AS point
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
-- One context for all passes: the point at which most of them went well.
points AS (
  SELECT device, implementation, point, row_number() OVER (PARTITION BY device, implementation
           ORDER BY count(DISTINCT params ->> '$.pass') DESC, max(parameters) DESC, max(params ->> '$.context') DESC, max(params ->> '$.precision') <> 'fp32',
                    max(attempt_uid) DESC) AS place
    FROM passes
   GROUP BY device, implementation, point
),
chosen AS (
  SELECT v.*, row_number() OVER (PARTITION BY v.device, v.implementation, v.params ->> '$.pass' ORDER BY v.attempt_uid DESC) AS place
    FROM passes v
    JOIN points q ON q.device = v.device AND q.implementation = v.implementation AND q.point = v.point AND q.place = 1
)
SELECT 1e-6 * e.t_ns AS "host time",
       sum(e.delta_bytes) OVER (PARTITION BY e.attempt_id, e.category ORDER BY e.t_ns, e.delta_bytes, e.seq) / 1048576.0 AS live, e.category,
       c.params ->> '$.pass' AS pass, c.params ->> '$.model' AS model, c.params ->> '$.context' AS context, c.params ->> '$.precision' AS precision,
       c.implementation, c.device, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN mem_event e ON e.attempt_id = c.attempt_id
 WHERE c.place = 1
 ORDER BY CASE c.params ->> '$.pass' WHEN 'forward' THEN 0 WHEN 'forward_kept' THEN 1 ELSE 2 END, c.implementation,
          CASE e.category WHEN 'parameters' THEN 0 WHEN 'gradients' THEN 1 WHEN 'optimizer state' THEN 2 WHEN 'saved activations' THEN 3
                          WHEN 'temporaries' THEN 4 ELSE 5 END, e.t_ns, e.delta_bytes, e.seq;
