-- figure: lines
-- title: FlashAttention-2 benchmark: rate
-- caption: FLOPs on unmasked pairs over the median time of forward and backward.
-- experiment: flash_benchmarking
-- x: seq|tokens|log2
-- y: rate|TFLOP/s|linear
-- series: implementation
-- panel: dtype, head_dim, mask, batch, heads, heads_kv, protocol, device
SELECT params ->> '$.seq' AS seq, iif(is_good, tflops, NULL) AS rate,
       implementation || iif(is_mine AND measured_here, ' (mine)', '') AS implementation, params ->> '$.pass' AS pass,
       iif(params ->> '$.causal', 'causal', 'full') AS mask, params ->> '$.dtype' AS dtype,
       params ->> '$.head_dim' AS head_dim, params ->> '$.batch' AS batch, params ->> '$.heads' AS heads,
       params ->> '$.heads_kv' AS heads_kv, protocol, device, status, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND ending <> 'not_asked' AND params ->> '$.seq_k' IN (0, params ->> '$.seq')
   AND params ->> '$.align' = 'top_left'
   AND params ->> '$.pass' = 'both'
 ORDER BY dtype <> 'bf16', dtype, head_dim, mask, batch, heads, heads_kv, protocol, device,
          implementation <> 'literal', implementation <> 'fused_softmax', row_order, seq;
