-- figure: lines
-- title: PyTorch attention benchmark: memory before backward
-- caption: Q, K, V, O and what forward keeps; unfused attention in C++.
-- experiment: pytorch_attention
-- x: seq|tokens|log2
-- y: memory|MiB|log10
-- series: implementation
-- panel: head_dim, dtype, batch, heads, device
-- note: Slope 2 is quadratic growth.
SELECT v.params ->> '$.seq' AS seq, max(k.value) / 1048576 AS memory,
       v.implementation || iif(v.is_mine AND v.measured_here, ' (mine)', '') AS implementation,
       v.params ->> '$.dtype' AS dtype,
       v.params ->> '$.head_dim' AS head_dim, v.params ->> '$.batch' AS batch,
       v.params ->> '$.heads' AS heads, v.device,
       'ok' AS status, max(v.run_uid) AS run_uid
  FROM v_measured v
  JOIN metric k ON k.attempt_id = v.attempt_id AND k.name = 'before_backward_bytes' AND k.value > 0
 WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.seq_k' IN (0, v.params ->> '$.seq')
 GROUP BY 1, 3, 4, 5, 6, 7, 8
 ORDER BY dtype <> 'fp32', dtype, head_dim, batch, heads, v.device, v.implementation <> 'literal',
          v.implementation <> 'fused_softmax', 3, seq;
