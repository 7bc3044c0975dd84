-- sentence: In a training step of {model} (context {context}, {precision}, {implementation}, {device}) live memory rises by {climb} over the
--   forward pass, block by block, peaks at {peak} {where_at}, falls through backward as activations are freed, and stays flat in the optimizer at
--   {floor} (parameters, gradients, moments).
-- experiment: memory_profiling
-- fills: a
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; climb|MiB|.4b|right;
--   where_at|1|s|left; peak|MiB|.5b|right; floor|MiB|.5b|right
WITH chosen AS (
  SELECT v.*, row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                     ORDER BY p.value DESC, v.params ->> '$.context' DESC, v.params ->> '$.precision' <> 'fp32',
                                              v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.pass' = 'step'
),
live AS (
  SELECT e.attempt_id, e.t_ns, sum(e.delta_bytes) OVER (PARTITION BY e.attempt_id ORDER BY e.t_ns, e.delta_bytes, e.seq) AS bytes
    FROM mem_event e
    JOIN chosen c ON c.attempt_id = e.attempt_id AND c.place = 1
),
top AS (
  SELECT l.attempt_id, l.t_ns, l.bytes, row_number() OVER (PARTITION BY l.attempt_id ORDER BY l.bytes DESC, l.t_ns) AS place FROM live l
),
phases AS (
  SELECT s.attempt_id, max(iif(s.name = 'forward', s.end_ns, NULL)) AS forward_ends, max(iif(s.name = 'optimizer', s.start_ns, NULL)) AS update_begins
    FROM span s
    JOIN chosen c ON c.attempt_id = s.attempt_id AND c.place = 1
   WHERE s.category = 'phase'
   GROUP BY s.attempt_id
)
SELECT c.params ->> '$.model' AS model, c.params ->> '$.context' AS context, c.params ->> '$.precision' AS precision, c.implementation, c.device,
       ((SELECT l.bytes FROM live l WHERE l.attempt_id = c.attempt_id AND l.t_ns <= p.forward_ends ORDER BY l.t_ns DESC, l.bytes LIMIT 1)
         - (SELECT l.bytes FROM live l WHERE l.attempt_id = c.attempt_id AND l.t_ns = 0 ORDER BY l.bytes DESC LIMIT 1)) / 1048576.0 AS climb,
       iif(t.t_ns <= p.forward_ends, 'in the forward pass', 'in the backward pass') AS where_at, t.bytes / 1048576.0 AS peak,
       (SELECT l.bytes FROM live l WHERE l.attempt_id = c.attempt_id AND l.t_ns <= p.update_begins ORDER BY l.t_ns DESC, l.bytes LIMIT 1)
         / 1048576.0 AS floor, c.run_uid
  FROM chosen c
  JOIN phases p ON p.attempt_id = c.attempt_id
  JOIN top t ON t.attempt_id = c.attempt_id AND t.place = 1
 WHERE c.place = 1
 ORDER BY c.device, c.implementation;
