-- sentence: In a training step of {model} (context {context}, {precision}, {implementation}, {device}) live memory
--   rises by {climb} over the forward pass, peaks at {peak} {where_at}, falls as activations are freed, and stays at
--   {floor} (parameters, gradients, moments) in the optimizer.{inference}
-- experiment: memory_profiling
-- fills: a
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   climb|GiB|.3b|right; where_at|1|s|left; peak|GiB|.4b|right; floor|GiB|.4b|right; inference|1|s|left
WITH chosen AS (
  SELECT v.*, row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                     ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                              v.params ->> '$.precision' <> 'fp32',
                                              v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.pass' = 'step'
),
live AS (
  SELECT e.attempt_id, e.t_ns,
         sum(e.delta_bytes) OVER (PARTITION BY e.attempt_id ORDER BY e.t_ns, e.delta_bytes, e.seq) AS bytes
    FROM mem_event e
    JOIN chosen c ON c.attempt_id = e.attempt_id AND c.place = 1
),
top AS (
  SELECT l.attempt_id, l.t_ns, l.bytes,
         row_number() OVER (PARTITION BY l.attempt_id ORDER BY l.bytes DESC, l.t_ns) AS place
    FROM live l
),
phases AS (
  SELECT s.attempt_id, max(iif(s.name = 'forward', s.end_ns, NULL)) AS forward_ends,
         max(iif(s.name = 'optimizer', s.start_ns, NULL)) AS update_begins
    FROM span s
    JOIN chosen c ON c.attempt_id = s.attempt_id AND c.place = 1
   WHERE s.category = 'phase'
   GROUP BY s.attempt_id
)
SELECT c.params ->> '$.model' AS model, c.params ->> '$.context' AS context,
       c.params ->> '$.precision' AS precision, c.implementation, c.device,
       ((SELECT l.bytes FROM live l WHERE l.attempt_id = c.attempt_id AND l.t_ns <= p.forward_ends
          ORDER BY l.t_ns DESC, l.bytes LIMIT 1)
         - (SELECT l.bytes FROM live l WHERE l.attempt_id = c.attempt_id AND l.t_ns = 0 ORDER BY l.bytes DESC
             LIMIT 1)) / 1073741824.0 AS climb,
       iif(t.t_ns <= p.forward_ends, 'in the forward pass', 'in the backward pass') AS where_at,
       t.bytes / 1073741824.0 AS peak,
       (SELECT l.bytes FROM live l WHERE l.attempt_id = c.attempt_id AND l.t_ns <= p.update_begins
         ORDER BY l.t_ns DESC, l.bytes LIMIT 1)
         / 1073741824.0 AS floor,
       coalesce((SELECT iif(k.value >= 1000 * 1048576,
                            printf(' Inference frees each block''s activations at once: '
                                   || 'of its peak of %.4g GiB, %.4g are weights.', k.value / 1073741824,
                                       4.0 * n.value / 1073741824),
                            printf(' Inference frees each block''s activations at once: '
                                   || 'of its peak of %.4g MiB, %.4g are weights.', k.value / 1048576,
                                   4.0 * n.value / 1048576))
                   FROM v_measured f
                   JOIN metric k ON k.attempt_id = f.attempt_id AND k.name = 'peak_bytes'
                   JOIN metric n ON n.attempt_id = f.attempt_id AND n.name = 'parameters'
                  WHERE f.experiment = ?1 AND f.is_good AND f.params ->> '$.pass' = 'forward'
                    AND f.params ->> '$.precision' = 'fp32'
                    AND json_remove(f.params, '$.pass') = json_remove(c.params, '$.pass')
                    AND f.comparability_key = c.comparability_key
                    AND f.implementation = c.implementation
                  LIMIT 1), '') AS inference, c.run_uid
  FROM chosen c
  JOIN phases p ON p.attempt_id = c.attempt_id
  JOIN top t ON t.attempt_id = c.attempt_id AND t.place = 1
 WHERE c.place = 1
 ORDER BY c.device, c.implementation;
