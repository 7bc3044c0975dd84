-- sentence: Speed-ups of forward + backward over unfused attention at d = {head_dim}: {speedups} ({pairing}, {device}). They are larger at long T, because unfused
--   attention writes and reads T² scores, while these kernels keep tiles of up to 128 × 128 on chip and one float a row{short}{products}.
-- experiment: flash_benchmarking
-- with: flash_benchmarking/speedup
-- fills: *
-- columns: head_dim|1|d|right; speedups|1|s|left; pairing|1|s|left; device|1|s|left; short|1|s|left;
--   products|1|s|left
longest AS (SELECT * FROM ends WHERE place = 1 AND seq > low_seq AND NOT is_mine AND speedup > at_low),
wide AS (SELECT *, max(iif(point ->> '$.head_dim' = 64, 1, 0)) OVER () AS has_64 FROM longest)
SELECT point ->> '$.head_dim' AS head_dim,
       group_concat(printf('`%s` (%s) %.3g× at T = %s and %.3g× at T = %s', implementation, point ->> '$.dtype', at_low, low_seq, speedup, seq), ', ') AS speedups,
       iif(min(paired AND low_paired), 'each from one run', 'in different runs') AS pairing, device,
       iif(EXISTS (SELECT 1 FROM v_environment g WHERE g.gpu_name = device), '; at short T launches bound both', '') AS short,
       iif(max(implementation = 'flash_tf32'), '; `flash_tf32` multiplies in TF32'
           || coalesce((SELECT printf(' (worst error of O %.2g of the %.2g allowed)', p.worst_error, p.tolerance) FROM v_properties p
                         WHERE p.experiment = ?1 AND p.implementation = 'flash_tf32' AND p.outcome = 'passed' AND p.property IN ('reference:out', 'samples:out') AND NOT p.is_mine
                         ORDER BY p.ratio DESC LIMIT 1), '') || ', unfused attention in fp32', '') AS products,
       max(run_uid) AS run_uid
  FROM wide w
 WHERE has_64 = 0 OR point ->> '$.head_dim' = 64
 GROUP BY comparability_key, protocol, point ->> '$.head_dim'
 ORDER BY device, protocol;
