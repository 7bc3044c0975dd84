-- sentence: At T = {seq}, d = {head_dim}, {dtype}: {implementation} keeps {kept} for backward versus {literal_kept} for
--   `literal`, in {ratio} times its time for forward + backward (protocol {protocol}, {device}).
-- experiment: pytorch_attention
-- columns: seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; implementation|1|code|left; kept|MiB|.3b|right;
--   literal_kept|MiB|.4b|right; ratio|×|ratio(ratio_low, ratio_high)|right; protocol|1|s|left; device|1|s|left
WITH timed AS (
  SELECT json_remove(v.params, '$.pass') AS point, v.implementation, v.is_mine, v.comparability_key,
         v.protocol, v.device, max(v.role) AS role, max(v.measured_here) AS measured_here,
         sum(v.time_ms) AS time, iif(count(v.low_ms) = 2, sum(v.low_ms), NULL) AS low,
         iif(count(v.high_ms) = 2, sum(v.high_ms), NULL) AS high,
         max(k.value) / 1048576 AS kept, max(v.run_uid) AS run_uid
    FROM v_measured v
    JOIN metric k ON k.attempt_id = v.attempt_id AND k.name = 'kept_bytes' AND k.value IS NOT NULL
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.pass' <> 'both'
   GROUP BY 1, 2, 3, 4, 5
  HAVING count(*) = 2
)
SELECT seq, head_dim, dtype, implementation, kept, literal_kept, ratio, ratio_low, ratio_high, protocol, device, run_uid
  -- the longest sequence that `literal` ran too
  FROM (SELECT p.point ->> '$.seq' AS seq, p.point ->> '$.head_dim' AS head_dim, p.point ->> '$.dtype' AS dtype,
               p.implementation, p.kept, l.kept AS literal_kept, p.time / l.time AS ratio, p.low / l.high AS ratio_low,
               p.high / l.low AS ratio_high, p.protocol, p.device, p.run_uid,
               row_number() OVER (PARTITION BY p.implementation, p.is_mine, p.comparability_key, p.protocol
                                      ORDER BY p.point ->> '$.seq' DESC, p.point ->> '$.dtype' <> 'fp32',
                                               p.point ->> '$.head_dim' <> 64, p.point) AS place
          FROM timed p
          JOIN timed l ON l.point = p.point AND l.comparability_key = p.comparability_key AND l.protocol = p.protocol
                       AND l.role = 'literal' AND l.measured_here
         WHERE p.role IS NOT 'literal')
 WHERE place = 1
 ORDER BY device, protocol, kept DESC, implementation;
