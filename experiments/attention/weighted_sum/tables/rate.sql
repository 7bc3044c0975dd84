-- sentence: {pass} over {rows} rows of {dim} in {dtype}: {implementation} reaches {rate} GB/s of compulsory traffic
--   (protocol {protocol}, {device}).
-- experiment: weighted_sum
-- columns: rows|1|d|right; dim|1|d|right; dtype|1|s|left; pass|1|s|left; implementation|1|code|left;
--   rate|GB/s|.3g|right; protocol|1|s|left; device|1|s|left
SELECT rows, dim, dtype, pass, implementation, rate, protocol, device, run_uid
  -- the largest case of each pass, by the implementation that is fastest there
  FROM (SELECT params ->> '$.rows' AS rows, params ->> '$.dim' AS dim, params ->> '$.dtype' AS dtype,
               params ->> '$.pass' AS pass, implementation, value AS rate, protocol,
               coalesce(gpu_name, cpu_model, 'unknown') AS device, run_uid,
               row_number() OVER (PARTITION BY params ->> '$.pass', measured_here, comparability_key, protocol
                                      ORDER BY (params ->> '$.rows') * (params ->> '$.dim') DESC,
                                               params ->> '$.dtype' = 'fp32' DESC, value DESC) AS place
          FROM v_latest
         WHERE experiment = 'weighted_sum' AND metric = 'gbps' AND checked)
 WHERE place = 1
 ORDER BY device, protocol, pass = 'forward' DESC;
