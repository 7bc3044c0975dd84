-- sentence: At d = {head_dim}, batch 1, causal, forward + backward: {speedups} as unfused attention ({pairing}, {device}). The gain grows with T because unfused
--   attention writes and reads T² scores, while these kernels keep tiles of up to 128 × 128 on chip and one float a row; at short T all are bound
--   by launches. {rate}
-- experiment: flash_benchmarking
-- with: flash_benchmarking/speedup
-- fills: *
-- columns: head_dim|1|d|right; speedups|1|s|left; pairing|1|s|left; device|1|s|left; rate|1|s|left
longest AS (SELECT * FROM ends WHERE place = 1 AND seq > low_seq AND NOT is_mine AND speedup > at_low),
wide AS (SELECT *, max(iif(point ->> '$.head_dim' = 64, 1, 0)) OVER () AS has_64 FROM longest)
SELECT point ->> '$.head_dim' AS head_dim,
       group_concat(printf('`%s` (%s) is %.3g times as fast at T = %s and %.3g times at T = %s', implementation, point ->> '$.dtype', at_low, low_seq, speedup, seq), ', ') AS speedups,
       iif(min(paired AND low_paired), 'each from one run', 'in different runs') AS pairing, device,
       coalesce((SELECT printf('At T = %s `%s` reaches %.3g TFLOP/s in %s.', m.params ->> '$.seq', m.implementation, m.tflops, m.params ->> '$.dtype')
                   FROM v_measured m
                  WHERE m.experiment = ?1 AND m.is_good AND NOT m.is_mine AND m.params ->> '$.pass' = 'both' AND m.comparability_key = w.comparability_key
                    AND m.protocol = w.protocol AND m.tflops IS NOT NULL
                  ORDER BY m.tflops DESC LIMIT 1), '') AS rate, max(run_uid) AS run_uid
  FROM wide w
 WHERE has_64 = 0 OR point ->> '$.head_dim' = 64
 GROUP BY comparability_key, protocol, point ->> '$.head_dim'
 ORDER BY device, protocol;
