-- sentence: {implementation} at T = {seq}, d = {head_dim}, {dtype}, causal {causal}: backward takes {ratio} times as
--   long as forward; the FLOP ratio is 2.5, or 3.5 where scores are recomputed twice (protocol {protocol}, {device}).
-- experiment: flash_backward
-- command: syslab run flash_forward,flash_backward
-- columns: seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; causal|1|flag|left; implementation|1|code|left;
--   ratio|×|ratio(low, high)|right; protocol|1|s|left; device|1|s|left
WITH times AS (
  SELECT experiment, params, implementation, is_mine, role, protocol, comparability_key, measured_here, run_uid,
         coalesce(gpu_name, cpu_model, 'unknown') AS device, value AS time, ci_low, ci_high
    FROM v_latest
   WHERE experiment IN ('flash_forward', 'flash_backward') AND metric = 'time' AND checked
)
SELECT seq, head_dim, dtype, causal, implementation, ratio, low, high, protocol, device, run_uid
  FROM (SELECT b.params ->> '$.seq' AS seq, b.params ->> '$.head_dim' AS head_dim, b.params ->> '$.dtype' AS dtype,
               b.params ->> '$.causal' AS causal, b.implementation,
               b.time / f.time AS ratio, b.ci_low / f.ci_high AS low,
               b.ci_high / f.ci_low AS high, b.protocol, b.device,
               b.run_uid,
               row_number() OVER (PARTITION BY b.implementation, b.is_mine, b.measured_here,
                                               b.comparability_key, b.protocol
                                      ORDER BY b.params ->> '$.seq' DESC, b.params ->> '$.dtype' = 'fp32' DESC,
                                               b.params) AS place
          FROM times b
          JOIN times f ON f.implementation = b.implementation AND f.is_mine = b.is_mine AND f.params = b.params
                      AND f.protocol = b.protocol AND f.comparability_key = b.comparability_key
                      AND f.measured_here = b.measured_here
         WHERE b.experiment = 'flash_backward' AND f.experiment = 'flash_forward' AND b.role IS NOT 'reference')
 WHERE place = 1
 ORDER BY device, protocol, implementation;
