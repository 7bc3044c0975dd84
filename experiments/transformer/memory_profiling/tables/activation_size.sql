-- sentence: An fp32 activation of the residual stream of {model} takes B·T·d·4 bytes: {mib} at B = {batch},
--   T = {length}, d = {width}{shorter}.
-- experiment: memory_profiling
-- fills: d
-- columns: model|1|s|left; length|1|d|right; batch|1|d|right; width|1|d|right; mib|MiB|.4b|right; shorter|1|s|left
SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS length, v.params ->> '$.batch' AS batch,
       CAST(round(s.value / (4.0 * (v.params ->> '$.batch') * (v.params ->> '$.context'))) AS INTEGER) AS width,
       s.value / 1048576 AS mib,
       iif(v.params ->> '$.context' > 128 AND v.params ->> '$.context' % 128 = 0,
           printf(', %.3g MiB at T = 128', s.value / 1048576 * 128 / (v.params ->> '$.context')), '') AS shorter,
       c.value / 1048576 AS scores, max(v.run_uid) AS run_uid
  FROM v_measured v
  JOIN metric s ON s.attempt_id = v.attempt_id AND s.name = 'stream_bytes'
  JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'scores_bytes'
 WHERE v.experiment = ?1 AND v.is_good
 GROUP BY model, length, batch, s.value, c.value
 ORDER BY length <> 512, s.value, model;
