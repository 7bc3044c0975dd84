-- sentence: Each pass alone, at T = {seq}, d = {head_dim}, beside unfused: {said} ({pairing}, {device}).
-- experiment: flash_benchmarking
-- fills: *
-- columns: seq|1|d|right; head_dim|1|d|right; said|1|s|left; pairing|1|s|left; device|1|s|left
WITH pair AS (
  SELECT o.params ->> '$.seq' AS seq, o.params ->> '$.head_dim' AS head_dim, o.params ->> '$.dtype' AS dtype, o.params ->> '$.pass' AS pass, o.implementation,
         o.device, o.comparability_key, o.protocol, o.time_ms, l.time_ms / o.time_ms AS gain, o.run_uid = l.run_uid AS paired, o.run_uid
    FROM v_measured o
    JOIN v_measured l ON l.case_id = o.case_id AND l.comparability_key = o.comparability_key AND l.protocol = o.protocol AND l.role = 'literal'
                     AND l.measured_here AND l.is_good
   WHERE o.experiment = ?1 AND o.is_good AND NOT o.is_mine AND o.params ->> '$.pass' <> 'both'
     AND o.implementation = iif(o.params ->> '$.dtype' = 'fp32', 'flash_tf32', 'flash_mma')
),
-- The longest sequence at which both sides ran both passes, of the head dimension nearest to 64.
chosen AS (
  SELECT *, rank() OVER (PARTITION BY comparability_key, protocol ORDER BY abs(head_dim - 64), seq DESC) AS place
    FROM (SELECT *, count(*) OVER (PARTITION BY comparability_key, protocol, head_dim, seq, dtype) AS passes FROM pair)
   WHERE passes = 2
   ORDER BY dtype, pass <> 'forward'
)
SELECT seq, head_dim,
       substr(group_concat(printf('%s%s %.3g ms (%.3g×)', iif(pass = 'forward', printf('; `%s` (%s) ', implementation, dtype), ', '), pass, time_ms, gain), ''), 3) AS said,
       iif(min(paired), 'each from one run', 'in different runs') AS pairing, device, max(run_uid) AS run_uid
  FROM chosen
 WHERE place = 1
 GROUP BY comparability_key, protocol, seq, head_dim
 ORDER BY device, protocol;
