-- figure: lines
-- title: FlashAttention-2 forward: time
-- caption: Median time of one call with its 95 % interval.
-- experiment: flash_forward
-- x: seq|tokens|log2
-- y: time|ms|log10
-- interval: low, high
-- series: implementation
-- panel: mask, dtype, head_dim, batch, heads, heads_kv, protocol, device
-- note: Slope 2 is quadratic growth.
SELECT params ->> '$.seq' AS seq, iif(is_good, time_ms, NULL) AS time, low_ms AS low, high_ms AS high,
       implementation || iif(is_mine AND measured_here, ' (mine)', '') AS implementation,
       iif(params ->> '$.causal', 'causal', 'full') AS mask,
       params ->> '$.dtype' AS dtype, params ->> '$.head_dim' AS head_dim, params ->> '$.batch' AS batch,
       params ->> '$.heads' AS heads, params ->> '$.heads_kv' AS heads_kv, protocol, device, status, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND ending <> 'not_asked' AND role IS NOT 'reference'
   AND params ->> '$.seq_k' IN (0, params ->> '$.seq') AND params ->> '$.align' = 'top_left'
 ORDER BY head_dim <> 64, dtype <> 'fp32', dtype, head_dim, mask DESC,
          batch, heads, heads_kv, protocol, device, row_order, seq;
