-- figure: areas
-- title: Live memory over a pass
-- caption: Bytes that are live at each moment, by what they are for: inference, a forward pass that keeps what backward needs, and a
--   training step, at the longest context of the largest model.
-- experiment: memory_profiling
-- x: time|ms|linear
-- y: live|MiB|linear
-- series: category
-- panel: pass, model, context, precision, implementation, device
-- fills: a
-- note: Time is the host's, which on a GPU queues ahead: memory is given out and taken back in that order.
WITH chosen AS (
  SELECT v.*, dense_rank() OVER (PARTITION BY v.device, v.implementation, v.params ->> '$.pass'
                                     ORDER BY p.value DESC, v.params ->> '$.context' DESC, v.params ->> '$.precision' <> 'fp32', v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT 1e-6 * e.t_ns AS time,
       sum(e.delta_bytes) OVER (PARTITION BY e.attempt_id, e.category ORDER BY e.t_ns, e.delta_bytes, e.seq) / 1048576.0 AS live, e.category,
       c.params ->> '$.pass' AS pass, c.params ->> '$.model' AS model, c.params ->> '$.context' AS context, c.params ->> '$.precision' AS precision,
       c.implementation, c.device, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN mem_event e ON e.attempt_id = c.attempt_id
 WHERE c.place = 1
 ORDER BY CASE c.params ->> '$.pass' WHEN 'forward' THEN 0 WHEN 'forward_kept' THEN 1 ELSE 2 END, c.implementation,
          CASE e.category WHEN 'parameters' THEN 0 WHEN 'gradients' THEN 1 WHEN 'optimizer state' THEN 2 WHEN 'saved activations' THEN 3
                          WHEN 'temporaries' THEN 4 ELSE 5 END, e.t_ns, e.delta_bytes, e.seq;
