-- sentence: Each pass alone and its gain over unfused, d = {head_dim}, T = {lengths} ({pairing}, {device}): {said}.
-- experiment: flash_benchmarking
-- fills: *
-- columns: head_dim|1|d|right; lengths|1|s|left; said|1|s|left; pairing|1|s|left; device|1|s|left
WITH pair AS (
  SELECT o.params ->> '$.seq' AS seq, o.params ->> '$.head_dim' AS head_dim, o.params ->> '$.dtype' AS dtype, o.params ->> '$.pass' AS pass, o.implementation,
         o.device, o.comparability_key, o.protocol, o.time_ms, iif(l.is_good, l.time_ms / o.time_ms, NULL) AS gain, o.run_uid = l.run_uid AS paired, o.run_uid
    FROM v_measured o
    JOIN v_measured l ON l.case_id = o.case_id AND l.comparability_key = o.comparability_key AND l.protocol = o.protocol AND l.role = 'literal'
                     AND l.measured_here AND (l.is_good OR l.status = 'oom')
   WHERE o.experiment = ?1 AND o.is_good AND NOT o.is_mine AND o.params ->> '$.pass' <> 'both'
     AND o.implementation = iif(o.params ->> '$.dtype' = 'fp32', 'flash_tf32', 'flash_mma')
),
-- The head dimension nearest to 64 at which something ran in both passes, and the lengths that every dtype and pass there has.
chosen AS (
  SELECT *, dense_rank() OVER (PARTITION BY comparability_key, protocol ORDER BY abs(head_dim - 64), head_dim) AS place
    FROM (SELECT *, count(*) OVER (PARTITION BY comparability_key, protocol, head_dim, seq) AS rows_of_length,
                 count(*) OVER (PARTITION BY comparability_key, protocol, head_dim, seq, dtype) AS passes FROM pair)
   WHERE passes = 2
),
alike AS (
  SELECT c.*, 2 * (SELECT count(DISTINCT x.dtype) FROM chosen x WHERE x.place = 1 AND x.comparability_key = c.comparability_key AND x.protocol = c.protocol) AS most
    FROM chosen c
   WHERE c.place = 1
),
-- "forward 0.00835, 0.0147 ms (3.84 to 5.5×)"
told AS (
  SELECT comparability_key, protocol, device, head_dim, dtype, pass, implementation, min(paired) AS paired, max(run_uid) AS run_uid,
         group_concat(seq, ', ') AS lengths,
         printf('%s %s ms (%s%s)', pass, group_concat(printf('%.3g', time_ms), ', '),
                iif(count(gain) = 0, 'unfused out of memory', printf(iif(count(gain) = 1, '%.3g×', '%.3g× to %.3g×'), min(gain), max(gain))),
                iif(count(gain) > 0 AND count(gain) < count(*), ', unfused is out of memory at ' || group_concat(iif(gain IS NULL, seq, NULL), ', '), '')) AS text
    FROM (SELECT * FROM alike WHERE rows_of_length = most ORDER BY seq)
   GROUP BY comparability_key, protocol, device, head_dim, dtype, pass, implementation
   ORDER BY dtype, pass <> 'forward'
)
SELECT head_dim, max(lengths) AS lengths,
       substr(group_concat(iif(pass = 'forward', printf('; `%s` (%s) ', implementation, dtype), ', ') || text, ''), 3) AS said,
       iif(min(paired), 'pairs from one run', 'in different runs') AS pairing, device, max(run_uid) AS run_uid
  FROM told
 GROUP BY comparability_key, protocol, head_dim
 ORDER BY device, protocol;
