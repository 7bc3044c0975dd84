-- sentence: An fp32 activation of the residual stream of {model} at context {context}, batch {batch} takes B·T·d·4 = {bytes} bytes ({mib}); an
--   attention score matrix B·H·T²·4 = {scores}.
-- experiment: memory_profiling
-- fills: d
-- columns: model|1|s|left; context|1|d|right; batch|1|d|right; bytes|B|d|right; mib|MiB|.4b|right; scores|MiB|.4b|right
SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS context, v.params ->> '$.batch' AS batch, CAST(s.value AS INTEGER) AS bytes,
       s.value / 1048576 AS mib, c.value / 1048576 AS scores, max(v.run_uid) AS run_uid
  FROM v_measured v
  JOIN metric s ON s.attempt_id = v.attempt_id AND s.name = 'stream_bytes'
  JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'scores_bytes'
 WHERE v.experiment = ?1 AND v.is_good
 GROUP BY model, context, batch, s.value, c.value
 ORDER BY s.value, model;
