-- title: Attention, fused beside unfused
-- caption: Our analogue, on the grid of `pytorch_attention`: an operation at a time, each into a matrix of its own (`literal`); softmax as
--   one operation; and FlashAttention-2, which fuses everything between Q, K, V and O. Medians; direct calls, and as a graph.
-- experiment: torch_compile
-- command: syslab run pytorch_attention --preset paper
-- fills: a
-- columns: head_dim|1|d|right; seq|1|d|right; dtype?|1|s|left; pass|1|s|left; literal|ms|.3g|right;
--   softmax as softmax fused|ms|.3g|right; flash|ms|.3g|right; flash_name as by|1|code|left; flash_graph as as a graph|ms|.3g|right;
--   softmax_gain as softmax vs literal|×|ci(softmax_low, softmax_high)|right;
--   flash_gain as flash vs literal|×|ci(flash_low, flash_high)|right; device?|1|s|left
-- note: `syslab run pytorch_attention --preset paper --protocol graph` adds the graphs. Checked results only; where `literal` ran out of
--   memory there is no row.
WITH t AS MATERIALIZED (
  SELECT v.* FROM v_measured v
   WHERE v.experiment = 'pytorch_attention' AND v.is_good AND NOT v.is_mine AND v.params ->> '$.pass' <> 'both'
),
flash AS (
  SELECT *, row_number() OVER (PARTITION BY case_id, comparability_key, protocol = 'graph' ORDER BY time_ms) AS place
    FROM t
   WHERE implementation GLOB 'flash_*'
)
SELECT l.params ->> '$.head_dim' AS head_dim, l.params ->> '$.seq' AS seq, l.params ->> '$.dtype' AS dtype, l.params ->> '$.pass' AS pass,
       l.time_ms AS literal, s.time_ms AS softmax, f.time_ms AS flash, f.implementation AS flash_name, g.time_ms AS flash_graph,
       l.time_ms / s.time_ms AS softmax_gain, l.low_ms / s.high_ms AS softmax_low, l.high_ms / s.low_ms AS softmax_high,
       l.time_ms / f.time_ms AS flash_gain, l.low_ms / f.high_ms AS flash_low, l.high_ms / f.low_ms AS flash_high, l.device,
       max(l.run_uid, coalesce(s.run_uid, ''), coalesce(f.run_uid, '')) AS run_uid
  FROM t l
  LEFT JOIN t s ON s.case_id = l.case_id AND s.comparability_key = l.comparability_key AND s.protocol = l.protocol
               AND s.implementation = CASE l.implementation WHEN 'literal' THEN 'fused_softmax' ELSE 'naive_cuda' END
  LEFT JOIN flash f ON f.case_id = l.case_id AND f.comparability_key = l.comparability_key AND f.protocol = l.protocol AND f.place = 1
  LEFT JOIN flash g ON g.case_id = l.case_id AND g.comparability_key = l.comparability_key AND g.protocol = 'graph' AND g.place = 1
 WHERE l.implementation IN ('literal', 'naive_cuda_literal') AND l.protocol <> 'graph'
 GROUP BY l.attempt_id
 ORDER BY l.device, dtype <> 'fp32', dtype, head_dim, seq, pass DESC;
