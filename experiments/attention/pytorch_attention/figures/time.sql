-- figure: lines
-- title: PyTorch attention benchmark: time
-- caption: Median time of one pass with its 95 % interval; unfused attention in C++.
-- experiment: pytorch_attention
-- x: seq|tokens|log2
-- y: time|ms|log10
-- interval: low, high
-- series: implementation
-- panel: pass, head_dim, dtype, mask, batch, heads, protocol, device
-- note: Slope 2 is quadratic growth.
SELECT params ->> '$.seq' AS seq, iif(is_good, time_ms, NULL) AS time, low_ms AS low, high_ms AS high,
       implementation || iif(is_mine AND measured_here, ' (mine)', '') AS implementation, params ->> '$.pass' AS pass,
       iif(params ->> '$.causal', 'causal', 'full') AS mask, params ->> '$.dtype' AS dtype,
       params ->> '$.head_dim' AS head_dim, params ->> '$.batch' AS batch,
       params ->> '$.heads' AS heads, protocol, device, status, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND ending <> 'not_asked' AND params ->> '$.seq_k' IN (0, params ->> '$.seq')
   AND params ->> '$.align' = 'top_left'
 ORDER BY dtype <> 'fp32', dtype,
          CASE pass WHEN 'forward' THEN 1 WHEN 'backward' THEN 2 ELSE 3 END, head_dim, mask DESC,
          batch, heads, protocol, device, implementation <> 'literal',
          implementation <> 'fused_softmax', row_order, seq;
