-- title: Fused softmax
-- caption: Speed-up of fusing everything between the two matrix products (`fused_softmax`) over `literal`; medians,
--   95 % intervals.
-- experiment: pytorch_attention
-- columns: batch?|1|d|right; heads?|1|d|right; head_dim|1|d|right; seq|1|d|right; dtype?|1|s|left; causal?|1|flag|left;
--   pass|1|s|left; unfused|ms|.3g|right; fused|ms|.3g|right; ratio|×|ci(ratio_low, ratio_high)|right;
--   paired as speed-up from?|1|s|left; protocol?|1|s|left; device?|1|s|left
-- note: No row where one of them ran out of memory. `speed-up from`: whether both sides come from one run.
SELECT l.params ->> '$.batch' AS batch, l.params ->> '$.heads' AS heads, l.params ->> '$.head_dim' AS head_dim,
       l.params ->> '$.seq' AS seq, l.params ->> '$.dtype' AS dtype, l.params ->> '$.causal' AS causal,
       l.params ->> '$.pass' AS pass, l.time_ms AS unfused, f.time_ms AS fused, l.time_ms / f.time_ms AS ratio,
       l.low_ms / f.high_ms AS ratio_low, l.high_ms / f.low_ms AS ratio_high,
       iif(l.run_uid = f.run_uid, 'one run', 'different runs') AS paired,
       l.protocol, l.device, max(l.run_uid, f.run_uid) AS run_uid
  FROM v_measured l
  JOIN v_measured f ON f.case_id = l.case_id AND f.world_size = l.world_size AND f.protocol = l.protocol
                   AND f.comparability_key = l.comparability_key
                   AND f.implementation = 'fused_softmax' AND NOT f.is_mine
 WHERE l.experiment = ?1 AND l.role = 'literal' AND l.measured_here AND l.is_good AND f.is_good
 ORDER BY dtype <> 'fp32', dtype, head_dim, seq, causal, batch, heads,
          CASE pass WHEN 'forward' THEN 1 WHEN 'backward' THEN 2 ELSE 3 END, l.protocol, l.device;
