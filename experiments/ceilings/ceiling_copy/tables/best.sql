-- sentence: Measured memory bandwidth: {value} GB/s (read + write), by {implementation} at {bytes} bytes a side
--   (protocol {protocol}, {device}).
-- experiment: ceiling_copy
-- command: syslab run ceiling_copy --preset laptop
-- columns: value|GB/s|.3g|right; implementation|1|code|left; bytes|B|d|right; protocol|1|s|left; device|1|s|left
SELECT value, implementation, params ->> '$.bytes' AS bytes, protocol,
       coalesce(gpu_name, cpu_model, 'unknown') AS device, run_uid
  FROM v_ceiling
 WHERE metric = 'gbps'
 ORDER BY device;
