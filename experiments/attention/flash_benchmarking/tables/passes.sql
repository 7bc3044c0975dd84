-- sentence: Passes alone, in {configurations} of 80 configurations ({where}; {pairing}, {device}{elsewhere}), unfused → fused at {ends}: {said}{gains}.
-- experiment: flash_benchmarking
-- fills: *
-- columns: configurations|1|d|right; where|1|s|left; ends|1|s|left; gains|1|s|left; said|1|s|left; pairing|1|s|left; device|1|s|left; elsewhere|1|s|left
WITH m AS MATERIALIZED (
  SELECT * FROM v_measured WHERE experiment = ?1 AND params ->> '$.pass' <> 'both' AND measured_here AND NOT is_mine AND (is_good OR status = 'oom')
),
pair AS (
  SELECT o.params ->> '$.seq' AS seq, o.params ->> '$.head_dim' AS head_dim, o.params ->> '$.dtype' AS dtype, o.params ->> '$.pass' AS pass, o.implementation,
         o.device, o.comparability_key, o.protocol, o.time_ms, iif(l.is_good, printf('%.3g', l.time_ms), 'OOM') || printf(' → %.3g', o.time_ms) AS pair, iif(l.is_good, l.time_ms / o.time_ms, NULL) AS gain, o.run_uid = l.run_uid AS paired, o.run_uid
    FROM m o
    JOIN m l ON l.case_id = o.case_id AND l.comparability_key = o.comparability_key AND l.protocol = o.protocol AND l.role = 'literal'
   WHERE o.is_good AND o.implementation = iif(o.params ->> '$.dtype' = 'fp32', 'flash_tf32', 'flash_mma')
),
-- The head dimension nearest to 64, and the ends of what ran there in both passes.
chosen AS (
  SELECT *, dense_rank() OVER (PARTITION BY comparability_key, protocol ORDER BY abs(head_dim - 64), head_dim) AS place
    FROM (SELECT *, count(*) OVER (PARTITION BY comparability_key, protocol, head_dim, seq, dtype) AS passes FROM pair)
   WHERE passes = 2
),
ends AS (
  SELECT *, min(seq) OVER (PARTITION BY comparability_key, protocol, dtype) AS low, max(seq) OVER (PARTITION BY comparability_key, protocol, dtype) AS high
    FROM chosen
   WHERE place = 1
),
-- "`flash_mma` (bf16) forward 0.0321 → 0.00835 and 76.6 → 1.49 ms, backward 0.0329 → 0.0175 and OOM → 3.91 ms"
told AS (
  SELECT comparability_key, protocol, dtype, head_dim, low, high,
         printf('`%s` (%s) ', implementation, dtype) || group_concat(text, ', ') AS text
    FROM (SELECT comparability_key, protocol, dtype, head_dim, low, high, implementation,
                 pass || ' ' || max(iif(seq = low, pair, NULL)) || iif(low < high, ' and ' || max(iif(seq = high, pair, NULL)), '') || ' ms' AS text
            FROM ends
           WHERE seq IN (low, high)
           GROUP BY comparability_key, protocol, dtype, head_dim, low, high, implementation, pass
           ORDER BY dtype, pass <> 'forward')
   GROUP BY comparability_key, protocol, dtype, head_dim, low, high, implementation
   ORDER BY dtype
),
-- Of each machine the protocol, or the version of one, under which most was measured.
gained AS (
  SELECT row_number() OVER (PARTITION BY comparability_key ORDER BY count(*) DESC, protocol DESC) AS nth,
         count(DISTINCT head_dim || ' ' || seq || ' ' || dtype) AS configurations, comparability_key, protocol, device, min(paired) AS paired, max(run_uid) AS run_uid,
         (SELECT group_concat(head_dim, ', ')
            FROM (SELECT DISTINCT d.head_dim FROM chosen d WHERE d.comparability_key = c.comparability_key AND d.protocol = c.protocol ORDER BY 1)) AS dims,
         '; in all, forward ' || printf('%.3g to %.3g', min(iif(pass = 'forward', gain, NULL)), max(iif(pass = 'forward', gain, NULL)))
           || ' and backward ' || printf('%.3g to %.3g times as fast', min(iif(pass = 'backward', gain, NULL)), max(iif(pass = 'backward', gain, NULL))) AS gains
    FROM chosen c
   GROUP BY comparability_key, protocol, device
  HAVING count(iif(pass = 'forward', gain, NULL)) > 0 AND count(iif(pass = 'backward', gain, NULL)) > 0
)
SELECT g.configurations,
       -- Where the pairs are not all of them.
       iif(g.dims = CAST(t.head_dim AS TEXT), '', g.gains) AS gains,
       'd = ' || g.dims AS "where",
       iif(g.dims = CAST(t.head_dim AS TEXT), '', printf('d = %d, ', t.head_dim)) || printf('T = %d', t.low) || iif(t.low < t.high, printf(' and %d', t.high), '') AS ends,
       group_concat(t.text, '; ') AS said,
       -- Then what forward and backward add up to is not to be held against the table's times of both.
       iif(g.comparability_key = (SELECT b.comparability_key FROM v_measured b
                                   WHERE b.experiment = ?1 AND b.params ->> '$.pass' = 'both' AND b.is_good AND NOT b.is_mine AND b.measured_here AND b.implementation IN ('flash_mma', 'flash_tf32')
                                   GROUP BY b.comparability_key, b.protocol ORDER BY count(*) DESC, b.comparability_key LIMIT 1),
           '', ', most of the table on another host') AS elsewhere, iif(g.paired, 'pairs from one run', 'in different runs') AS pairing, g.device, g.run_uid
  FROM gained g
  JOIN told t ON t.comparability_key = g.comparability_key AND t.protocol = g.protocol
 WHERE g.nth = 1
 GROUP BY g.comparability_key, g.protocol, t.head_dim, t.low, t.high
 ORDER BY g.configurations DESC, g.device, g.protocol, t.low;
