-- sentence: {implementation} at T = {seq}, d = {head_dim}, {dtype}: with a causal mask, which leaves {pairs} of the
--   pairs, forward takes {ratio} times as long as without (protocol {protocol}, {device}).
-- experiment: flash_forward
-- columns: seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; implementation|1|code|left;
--   ratio|×|ratio(low, high)|right; pairs|1|.3g|right; protocol|1|s|left; device|1|s|left
WITH times AS (
  SELECT case_id, params, implementation, is_mine, role, protocol, comparability_key, measured_here,
         run_uid, attempt_id,
         coalesce(gpu_name, cpu_model, 'unknown') AS device, value AS time, ci_low, ci_high
    FROM v_latest
   WHERE experiment = 'flash_forward' AND metric = 'time' AND checked
)
-- Cases that differ in `causal` alone; the longest sequence of each implementation that is not the naive one.
SELECT seq, head_dim, dtype, implementation, ratio, low, high,
       (seq + 1.0) / (2.0 * seq) AS pairs, protocol, device, run_uid
  FROM (SELECT c.params ->> '$.seq' AS seq, c.params ->> '$.head_dim' AS head_dim, c.params ->> '$.dtype' AS dtype,
               c.implementation, c.time / f.time AS ratio, c.ci_low / f.ci_high AS low,
               c.ci_high / f.ci_low AS high, c.protocol, c.device, c.run_uid,
               row_number() OVER (PARTITION BY c.implementation, c.is_mine, c.measured_here,
                                               c.comparability_key, c.protocol
                                      ORDER BY c.params ->> '$.seq' DESC, c.params ->> '$.dtype' = 'fp32' DESC,
                                               c.params) AS place
          FROM times c
          JOIN times f ON f.implementation = c.implementation AND f.is_mine = c.is_mine AND f.protocol = c.protocol
                      AND f.comparability_key = c.comparability_key AND f.measured_here = c.measured_here
                      AND json_remove(f.params, '$.causal') = json_remove(c.params, '$.causal')
         WHERE c.params ->> '$.causal' AND NOT f.params ->> '$.causal' AND c.params ->> '$.align' = 'top_left'
           AND c.params ->> '$.seq_k' IN (0, c.params ->> '$.seq')
           AND coalesce(c.role, '') NOT IN ('naive', 'reference', 'gpu_reference'))
 WHERE place = 1
 ORDER BY device, protocol, implementation;
