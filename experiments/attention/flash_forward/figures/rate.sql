-- figure: lines
-- title: FlashAttention-2 forward: rate
-- caption: FLOPs on unmasked pairs over the median time; the dashed line is the fastest matrix product measured in the
--   same dtype.
-- experiment: flash_forward
-- x: seq|tokens|log2
-- y: rate|TFLOP/s|linear
-- series: implementation
-- panel: mask, dtype, head_dim, batch, heads, heads_kv, protocol, device
-- ceiling: ceiling|measured GEMM|syslab run ceiling_gemm
WITH gemm AS MATERIALIZED (
  SELECT comparability_key, dtype AS gemm_dtype, value FROM v_ceiling WHERE metric = 'tflops'
)
SELECT params ->> '$.seq' AS seq, iif(is_good, tflops, NULL) AS rate,
       gemm.value AS ceiling,
       implementation || iif(is_mine AND measured_here, ' (mine)', '') AS implementation,
       iif(params ->> '$.causal', 'causal', 'full') AS mask,
       params ->> '$.dtype' AS dtype, params ->> '$.head_dim' AS head_dim, params ->> '$.batch' AS batch,
       params ->> '$.heads' AS heads, params ->> '$.heads_kv' AS heads_kv, protocol, device, status, run_uid
  FROM v_measured m
  LEFT JOIN gemm ON gemm.comparability_key = m.comparability_key AND gemm_dtype = params ->> '$.dtype'
 WHERE experiment = ?1 AND ending <> 'not_asked' AND role IS NOT 'reference'
   AND params ->> '$.seq_k' IN (0, params ->> '$.seq') AND params ->> '$.align' = 'top_left'
 ORDER BY head_dim <> 64, dtype <> 'fp32', dtype, head_dim, mask DESC,
          batch, heads, heads_kv, protocol, device, row_order, seq;
