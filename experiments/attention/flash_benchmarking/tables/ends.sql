-- sentence: {implementation} in {dtype}, d = {head_dim} runs out of memory at T = {seq} ({pass}): {why} (protocol
--   {protocol}).
-- experiment: flash_benchmarking
-- columns: implementation|1|code|left; dtype|1|s|left; head_dim|1|d|right; pass|1|s|left; seq|1|d|right; why|1|s|left;
--   protocol|1|s|left; device|1|s|left
SELECT implementation, dtype, head_dim, pass, seq, why, protocol, device, run_uid
  FROM (SELECT implementation, params ->> '$.dtype' AS dtype, params ->> '$.head_dim' AS head_dim,
               params ->> '$.pass' AS pass, params ->> '$.seq' AS seq, message AS why, protocol, device, run_uid,
               row_number() OVER (PARTITION BY implementation, is_mine, params ->> '$.dtype',
                                               comparability_key, protocol
                                      ORDER BY params ->> '$.seq', params ->> '$.head_dim',
                                               params ->> '$.pass' <> 'forward', params) AS place
          FROM v_measured
         WHERE experiment = ?1 AND status = 'oom')
 WHERE place = 1
 ORDER BY device, protocol, implementation, dtype;
