-- sentence: Backward at seq {seq}, head_dim {head_dim}, {dtype}, causal {causal}: {implementation} takes {time} ms,
--   {speedup} times as fast as `naive` (protocol {protocol}, {device}).
-- experiment: flash_backward
-- columns: seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; causal|1|flag|left; implementation|1|code|left;
--   time|ms|ci(low_ms, high_ms)|right; speedup|×|ratio(speedup_low, speedup_high)|right; protocol|1|s|left; device|1|s|left
SELECT seq, head_dim, dtype, causal, implementation, time, low_ms, high_ms, speedup, speedup_low, speedup_high, protocol, device, run_uid
  -- the fastest of ours at the longest sequence that `naive` ran too, a kind of machine and a protocol
  FROM (SELECT params ->> '$.seq' AS seq, params ->> '$.head_dim' AS head_dim, params ->> '$.dtype' AS dtype,
               params ->> '$.causal' AS causal, implementation, time_ms AS time, vs_naive AS speedup, vs_naive_low AS speedup_low,
               vs_naive_high AS speedup_high, low_ms, high_ms, protocol, device, run_uid,
               row_number() OVER (PARTITION BY comparability_key, protocol
                                      ORDER BY params ->> '$.seq' DESC, params ->> '$.dtype' = 'fp32' DESC,
                                               params ->> '$.causal', time_ms) AS place
          FROM v_measured
         WHERE experiment = ?1 AND vs_naive IS NOT NULL AND implementation NOT IN ('naive', 'naive_cuda', 'reference', 'reference_cuda'))
 WHERE place = 1
 ORDER BY device, protocol;
