-- title: Mixed precision: forward and backward
-- caption: Mean ± standard deviation (n − 1) of forward (with the loss) and backward; speed-ups over the same
--   implementation in fp32 and tf32 are ratios of medians with 95 % intervals, paired within one protocol.
-- experiment: benchmarking_mixed_precision
-- fills: c
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; implementation|1|code|left; precision|1|s|left;
--   forward|ms|ci(forward_low, forward_high)|right; backward|ms|ci(backward_low, backward_high)|right;
--   forward_speedup as forward vs fp32|×|ci(forward_least, forward_most)|right;
--   backward_speedup as backward vs fp32|×|ci(backward_least, backward_most)|right;
--   over_tf32 as both vs tf32|×|ci(over_least, over_most)|right; tflops as rate|TFLOP/s|.3g|right; peak|GiB|.4g|right;
--   n|1|d|right; noise?|1|s|left; paired as speed-up from?|1|s|left; protocol?|1|s|left; device?|1|s|left;
--   status|1|status|left
-- note: fp32 is without tensor cores, tf32 with them; what others call fp32 is often tf32.
-- note: `speed-up from`: whether both sides of `vs fp32` come from one run.
WITH t AS MATERIALIZED (
  SELECT v.*, json_remove(v.params, '$.precision') AS point, v.params ->> '$.precision' AS precision,
         metrics AS found,
         (SELECT json_group_object(k.name, json_array(k.value, k.ci_low, k.ci_high)) FROM metric k
           WHERE k.attempt_id = v.attempt_id AND k.name IN ('forward', 'backward')) AS medians
    FROM v_measured v
   WHERE experiment = ?1
),
s AS (
  SELECT *, 1e3 * (found ->> '$.forward_mean') AS forward, 1e3 * (found ->> '$.forward_stddev') AS forward_sd,
         1e3 * (found ->> '$.backward_mean') AS backward, 1e3 * (found ->> '$.backward_stddev') AS backward_sd,
         medians ->> '$.forward[0]' AS f, medians ->> '$.forward[1]' AS f_low, medians ->> '$.forward[2]' AS f_high,
         medians ->> '$.backward[0]' AS b, medians ->> '$.backward[1]' AS b_low, medians ->> '$.backward[2]' AS b_high
    FROM t
),
good AS (SELECT * FROM s WHERE is_good),
-- Bounds take both intervals at their worst; nothing is faster than itself.
gain AS (
  SELECT s.attempt_id, f.f / s.f AS forward_speedup, iif(other_f, f.f_low / s.f_high, NULL) AS forward_least,
         iif(other_f, f.f_high / s.f_low, NULL) AS forward_most, f.b / s.b AS backward_speedup,
         iif(other_f, f.b_low / s.b_high, NULL) AS backward_least,
         iif(other_f, f.b_high / s.b_low, NULL) AS backward_most,
         (x.f + x.b) / (s.f + s.b) AS over_tf32,
         iif(other_x, (x.f_low + x.b_low) / (s.f_high + s.b_high), NULL) AS over_least,
         iif(other_x, (x.f_high + x.b_high) / (s.f_low + s.b_low), NULL) AS over_most,
         iif(f.run_uid = s.run_uid, 'one run', 'different runs') AS paired
    FROM (SELECT *, "precision" <> 'fp32' AS other_f, "precision" <> 'tf32' AS other_x FROM good) s
    LEFT JOIN good f ON f.point = s.point AND f.implementation = s.implementation
                    AND f.comparability_key = s.comparability_key
                    AND f.protocol = s.protocol AND f.precision = 'fp32'
    LEFT JOIN good x ON x.point = s.point AND x.implementation = s.implementation
                    AND x.comparability_key = s.comparability_key
                    AND x.protocol = s.protocol AND x.precision = 'tf32'
)
SELECT s.params ->> '$.model' AS model, s.params ->> '$.batch' AS batch,
       s.params ->> '$.context' AS context, s.implementation,
       s.precision, s.forward, s.forward - s.forward_sd AS forward_low, s.forward + s.forward_sd AS forward_high,
       s.backward, s.backward - s.backward_sd AS backward_low, s.backward + s.backward_sd AS backward_high,
       g.forward_speedup, g.forward_least, g.forward_most,
       g.backward_speedup, g.backward_least, g.backward_most, g.over_tf32,
       g.over_least, g.over_most, coalesce(g.paired, '–') AS paired, s.tflops,
       (s.found ->> '$.peak_bytes') / 1073741824 AS peak, s.n,
       s.noise, s.protocol, s.device, s.status, s.message, s.run_uid
  FROM s
  LEFT JOIN gain g ON g.attempt_id = s.attempt_id
 ORDER BY CASE model WHEN 'tiny' THEN 0 WHEN 'cpu10m' THEN 1 WHEN 'small' THEN 2 WHEN 'medium' THEN 3
                     WHEN 'large' THEN 4
                     WHEN 'xl25' THEN 5
                     WHEN 'xl26' THEN 6
                     WHEN '2.7B' THEN 6
                     ELSE 7 END, model, s.params ->> '$.context', s.device, s.protocol,
          CASE s.implementation WHEN 'eager' THEN 1 WHEN 'fused' THEN 2 WHEN 'graph' THEN 3
                                ELSE 0 END, s.implementation,
          CASE s.precision WHEN 'fp64' THEN 0 WHEN 'fp32' THEN 1 WHEN 'tf32' THEN 2 WHEN 'bf16_amp' THEN 3
                           WHEN 'fp16_amp' THEN 4 ELSE 5 END;
