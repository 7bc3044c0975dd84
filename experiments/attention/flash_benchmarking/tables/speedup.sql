-- sentence: In {dtype} at head_dim {head_dim}, {implementation} beside attention that holds its scores (`literal`): {at_low} times
--   as fast at seq {low_seq}, {at_high} times at seq {high_seq}, forward and backward together (protocol {protocol}, {device}).
-- experiment: flash_benchmarking
-- columns: dtype|1|s|left; head_dim|1|d|right; implementation|1|code|left; at_low|×|ratio(at_low_low, at_low_high)|right;
--   low_seq|1|d|right; at_high|×|ratio(at_high_low, at_high_high)|right; high_seq|1|d|right; protocol|1|s|left; device|1|s|left
WITH both AS MATERIALIZED (
  SELECT json_remove(params, '$.seq') AS point, params ->> '$.seq' AS seq, params, implementation, is_mine, world_size,
         comparability_key, protocol, device, time_ms, low_ms, high_ms, run_uid
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND params ->> '$.pass' = 'both'
),
beside AS (
  SELECT b.*, l.time_ms / b.time_ms AS speedup, l.low_ms / b.high_ms AS least, l.high_ms / b.low_ms AS most
    FROM both b
    JOIN both l ON l.params = b.params AND l.world_size = b.world_size AND l.comparability_key = b.comparability_key
               AND l.protocol = b.protocol AND l.implementation IN ('literal', 'naive_cuda_literal') AND NOT l.is_mine
   WHERE b.implementation NOT IN ('literal', 'naive_cuda_literal', 'fused_softmax', 'naive', 'naive_cuda')
),
-- The shortest and the longest sequence that both ran.
ends AS (
  SELECT *, first_value(seq) OVER up AS low_seq, first_value(speedup) OVER up AS at_low,
         first_value(least) OVER up AS at_low_low, first_value(most) OVER up AS at_low_high,
         row_number() OVER (PARTITION BY point, implementation, is_mine, world_size, comparability_key, protocol
                                ORDER BY seq DESC) AS place
    FROM beside
  WINDOW up AS (PARTITION BY point, implementation, is_mine, world_size, comparability_key, protocol ORDER BY seq)
)
SELECT point ->> '$.dtype' AS dtype, point ->> '$.head_dim' AS head_dim, implementation, at_low, at_low_low, at_low_high, low_seq,
       speedup AS at_high, least AS at_high_low, most AS at_high_high, seq AS high_seq, protocol, device, run_uid
  FROM ends
 WHERE place = 1 AND seq > low_seq
 ORDER BY device, protocol, dtype <> 'bf16', dtype, head_dim, implementation;
