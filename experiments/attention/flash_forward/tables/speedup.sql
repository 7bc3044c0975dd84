-- sentence: Forward at T = {seq}, d = {head_dim}, {dtype}, causal {causal}: {implementation} takes {time} ms, {speedup}
--   times as fast as {baseline} ({pairing}, protocol {protocol}, {device}).
-- experiment: flash_forward
-- columns: seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; causal|1|flag|left; implementation|1|code|left;
--   time|ms|ci(low_ms, high_ms)|right; speedup|×|ratio(speedup_low, speedup_high)|right; baseline|1|code|left;
--   pairing|1|s|left; protocol|1|s|left; device|1|s|left
SELECT seq, head_dim, dtype, causal, implementation, time, low_ms, high_ms, speedup,
       speedup_low, speedup_high, baseline, pairing, protocol, device, run_uid
  -- the fastest of ours at the longest sequence that `naive` ran too, a kind of machine and a protocol
  FROM (SELECT v.params ->> '$.seq' AS seq, v.params ->> '$.head_dim' AS head_dim, v.params ->> '$.dtype' AS dtype,
               v.params ->> '$.causal' AS causal, v.implementation, v.time_ms AS time,
               v.vs_naive AS speedup, v.vs_naive_low AS speedup_low,
               v.vs_naive_high AS speedup_high, v.low_ms, v.high_ms, n.implementation AS baseline,
               iif(n.run_uid = v.run_uid, 'same run', 'in different runs') AS pairing, v.protocol, v.device, v.run_uid,
               row_number() OVER (PARTITION BY v.comparability_key, v.protocol
                                      ORDER BY v.params ->> '$.seq' DESC, v.params ->> '$.dtype' = 'fp32' DESC,
                                               v.params ->> '$.causal', v.time_ms) AS place
          FROM v_measured v
          JOIN v_measured n ON n.case_id = v.case_id AND n.world_size = v.world_size
                           AND n.comparability_key = v.comparability_key
                           AND n.protocol IS v.protocol AND n.measured_here = v.measured_here
                           AND n.role = 'naive' AND n.is_good
                           AND abs(n.time_ms / v.time_ms - v.vs_naive) <= 1e-9 * v.vs_naive
         WHERE v.experiment = ?1 AND v.vs_naive IS NOT NULL
           AND coalesce(v.role, '') NOT IN ('naive', 'reference', 'gpu_reference'))
 WHERE place = 1
 ORDER BY device, protocol;
