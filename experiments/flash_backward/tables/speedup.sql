-- sentence: Backward at seq {seq}, head_dim {head_dim}, {dtype}, causal {causal}: {implementation} takes {time} ms,
--   {speedup} times as fast as `naive` (protocol {protocol}, {device}).
-- experiment: flash_backward
-- columns: seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; causal|1|flag|left; implementation|1|code|left;
--   time|ms|.3g|right; speedup|×|.3g|right; protocol|1|s|left; device|1|s|left
WITH times AS (
  SELECT case_id, params, implementation, is_mine, protocol, comparability_key, run_uid, attempt_id,
         coalesce(gpu_name, cpu_model, 'unknown') AS device, value AS time
    FROM v_latest
   WHERE experiment = 'flash_backward' AND metric = 'time' AND checked
)
-- The fastest of ours at the longest sequence that both ran, a kind of machine and a protocol.
SELECT seq, head_dim, dtype, causal, implementation, 1e3 * time AS time, naive_time / time AS speedup, protocol, device,
       run_uid
  FROM (SELECT f.params ->> '$.seq' AS seq, f.params ->> '$.head_dim' AS head_dim, f.params ->> '$.dtype' AS dtype,
               f.params ->> '$.causal' AS causal, f.implementation, f.time, n.time AS naive_time, f.protocol, f.device,
               f.run_uid,
               row_number() OVER (PARTITION BY f.comparability_key, f.protocol
                                      ORDER BY f.params ->> '$.seq' DESC, f.params ->> '$.dtype' = 'fp32' DESC,
                                               f.params ->> '$.causal', f.time) AS place
          FROM times f
          JOIN times n ON n.case_id = f.case_id AND n.protocol = f.protocol
                      AND n.comparability_key = f.comparability_key AND n.implementation = 'naive' AND NOT n.is_mine
         WHERE f.implementation <> 'naive' AND f.implementation <> 'reference')
 WHERE place = 1
 ORDER BY device, protocol;
