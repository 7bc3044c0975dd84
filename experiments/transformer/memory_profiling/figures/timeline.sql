-- figure: areas
-- title: Memory profiling: live memory over time
-- caption: Live bytes by category, inference and a training step of the largest model at its longest context where both
--   ran: 0 to 1 is forward, 1 to 2 backward, 2 to 3 the optimizer, each by its allocations in order.
-- experiment: memory_profiling
-- x: phase|1|linear
-- y: live|GiB|linear
-- series: category
-- panel: pass, model, context, precision, implementation, device
-- fills: a
-- note: In the order in which the host allocates and frees; the device runs behind it.
WITH profiled AS (
  SELECT v.*, p.value AS parameters,
         json_array(json_remove(v.params, '$.pass'), v.world_size, v.protocol, v.comparability_key) AS point
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
-- One context for every pass: the point at which most of them went well.
points AS (
  SELECT device, implementation, point, row_number() OVER (PARTITION BY device, implementation
           ORDER BY count(DISTINCT params ->> '$.pass') DESC, max(parameters) DESC,
                    max(params ->> '$.context') DESC, max(params ->> '$.precision') <> 'fp32',
                    max(attempt_uid) DESC) AS place
    FROM profiled
   GROUP BY device, implementation, point
),
chosen AS (
  SELECT v.*, row_number() OVER (PARTITION BY v.device, v.implementation, v.params ->> '$.pass'
                                     ORDER BY v.attempt_uid DESC) AS place
    FROM profiled v
    JOIN points q ON q.device = v.device AND q.implementation = v.implementation AND q.point = v.point AND q.place = 1
),
-- The host queues kernels ahead, so its clock is not the device's: the phase tells when, and in it the order of events.
phases AS (
  SELECT attempt_id, max(iif(name = 'forward', end_ns, NULL)) AS forward_ends,
         max(iif(name = 'backward', end_ns, NULL)) AS backward_ends
    FROM span
   WHERE category = 'phase'
   GROUP BY attempt_id
),
placed AS (
  SELECT e.*, CASE WHEN p.forward_ends IS NULL OR e.t_ns <= p.forward_ends THEN 0
                   WHEN p.backward_ends IS NULL OR e.t_ns <= p.backward_ends THEN 1 ELSE 2 END AS phase
    FROM chosen c
    JOIN mem_event e ON e.attempt_id = c.attempt_id
    LEFT JOIN phases p ON p.attempt_id = c.attempt_id
   WHERE c.place = 1
),
ordered AS (
  SELECT *, phase + (rank() OVER here - 1.0) / max(1, count(*) OVER (PARTITION BY attempt_id, phase) - 1) AS at
    FROM placed
  WINDOW here AS (PARTITION BY attempt_id, phase ORDER BY t_ns)
)
SELECT e.at AS phase,
       sum(e.delta_bytes) OVER (PARTITION BY e.attempt_id, e.category
                                    ORDER BY e.t_ns, e.delta_bytes, e.seq) / 1073741824.0 AS live, e.category,
       c.params ->> '$.pass' AS pass, c.params ->> '$.model' AS model,
       c.params ->> '$.context' AS context, c.params ->> '$.precision' AS precision,
       c.implementation, c.device, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN ordered e ON e.attempt_id = c.attempt_id
 WHERE c.place = 1
 ORDER BY CASE c.params ->> '$.pass' WHEN 'forward' THEN 0 WHEN 'forward_kept' THEN 1 ELSE 2 END, c.implementation,
          CASE e.category WHEN 'parameters' THEN 0 WHEN 'gradients' THEN 1 WHEN 'optimizer state' THEN 2
                          WHEN 'saved activations' THEN 3
                          WHEN 'temporaries' THEN 4 ELSE 5 END, e.t_ns, e.delta_bytes, e.seq;
