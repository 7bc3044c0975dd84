-- sentence: In {dtype} at d = {head_dim}, forward + backward of {implementation} is {at_low} times as fast as unfused
--   attention (`literal`) at T = {low_seq} and {at_high} times at T = {high_seq} ({pairing}, protocol {protocol},
--   {device}).
-- experiment: flash_benchmarking
-- columns: dtype|1|s|left; head_dim|1|d|right; implementation|1|code|left;
--   at_low|×|ratio(at_low_low, at_low_high)|right; low_seq|1|d|right; at_high|×|ratio(at_high_low, at_high_high)|right;
--   high_seq|1|d|right; pairing|1|s|left; protocol|1|s|left; device|1|s|left
WITH both AS MATERIALIZED (
  SELECT json_remove(params, '$.seq') AS point, params ->> '$.seq' AS seq,
         params, implementation, is_mine, role, measured_here, world_size,
         comparability_key, protocol, device, time_ms, low_ms, high_ms, run_uid
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND params ->> '$.pass' = 'both'
),
beside AS (
  SELECT b.*, l.time_ms / b.time_ms AS speedup, l.low_ms / b.high_ms AS least,
         l.high_ms / b.low_ms AS most, l.run_uid = b.run_uid AS paired
    FROM both b
    JOIN both l ON l.params = b.params AND l.world_size = b.world_size AND l.comparability_key = b.comparability_key
               AND l.protocol = b.protocol AND l.role = 'literal' AND l.measured_here
   WHERE coalesce(b.role, '') NOT IN ('literal', 'intermediate', 'naive')
),
-- The shortest and the longest sequence that both ran.
ends AS (
  SELECT *, first_value(seq) OVER up AS low_seq, first_value(speedup) OVER up AS at_low,
         first_value(least) OVER up AS at_low_low, first_value(most) OVER up AS at_low_high,
         first_value(paired) OVER up AS low_paired,
         row_number() OVER (PARTITION BY point, implementation, is_mine, world_size, comparability_key, protocol
                                ORDER BY seq DESC) AS place
    FROM beside
  WINDOW up AS (PARTITION BY point, implementation, is_mine, world_size, comparability_key, protocol ORDER BY seq)
)
SELECT point ->> '$.dtype' AS dtype, point ->> '$.head_dim' AS head_dim,
       implementation, at_low, at_low_low, at_low_high, low_seq,
       speedup AS at_high, least AS at_high_low, most AS at_high_high, seq AS high_seq,
       iif(paired AND low_paired, 'one run each', 'in different runs') AS pairing, protocol, device, run_uid
  FROM ends
 WHERE place = 1 AND seq > low_seq
 ORDER BY device, protocol, dtype <> 'bf16', dtype, head_dim, implementation;
