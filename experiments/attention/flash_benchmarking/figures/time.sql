-- figure: lines
-- title: FlashAttention-2 benchmark: time
-- caption: Median time of one call with its 95 % interval.
-- experiment: flash_benchmarking
-- x: seq|tokens|log2
-- y: time|ms|log10
-- interval: low, high
-- series: implementation
-- panel: pass, dtype, head_dim, mask, batch, heads, heads_kv, protocol, device
-- note: Slope 2 is quadratic growth.
-- note: Only the head dimension nearest to 64; the table has all.
WITH nearest AS (
  SELECT params ->> '$.head_dim' AS head_dim FROM v_measured
   WHERE experiment = ?1 AND time_ms IS NOT NULL ORDER BY abs(params ->> '$.head_dim' - 64), 1 DESC LIMIT 1
)
SELECT params ->> '$.seq' AS seq, iif(is_good, time_ms, NULL) AS time, low_ms AS low, high_ms AS high,
       implementation || iif(is_mine AND measured_here, ' (mine)', '') AS implementation, params ->> '$.pass' AS pass,
       iif(params ->> '$.causal', 'causal', 'full') AS mask, params ->> '$.dtype' AS dtype,
       params ->> '$.head_dim' AS head_dim, params ->> '$.batch' AS batch, params ->> '$.heads' AS heads,
       params ->> '$.heads_kv' AS heads_kv, protocol, device, status, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND ending <> 'not_asked' AND params ->> '$.seq_k' IN (0, params ->> '$.seq')
   AND params ->> '$.align' = 'top_left'
   AND params ->> '$.head_dim' = (SELECT head_dim FROM nearest)
 ORDER BY dtype <> 'bf16', dtype, CASE pass WHEN 'forward' THEN 1 WHEN 'backward' THEN 2 ELSE 3 END, mask,
          batch, heads, heads_kv, protocol, device, implementation <> 'literal',
          implementation <> 'fused_softmax', row_order, seq;
