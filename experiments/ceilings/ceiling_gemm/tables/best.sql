-- sentence: Measured matrix product peak in {dtype}: {value} TFLOP/s, by {implementation} at size {size} (protocol
--   {protocol}, {device}).
-- experiment: ceiling_gemm
-- command: syslab run ceiling_gemm --preset laptop
-- columns: dtype|1|s|left; value|TFLOP/s|.3g|right; implementation|1|code|left; size|1|d|right; protocol|1|s|left;
--   device|1|s|left
SELECT dtype, value, implementation, params ->> '$.size' AS size, protocol,
       coalesce(gpu_name, cpu_model, 'unknown') AS device, run_uid
  FROM v_ceiling
 WHERE metric = 'tflops'
 ORDER BY device, dtype <> 'fp32', dtype;
