-- title: torch.compile: attention
-- caption: Our analogue of compiling, on the grid of `pytorch_attention`: unfused (`literal`), fused softmax, and
--   FlashAttention-2; medians, called directly and as a CUDA graph.
-- experiment: torch_compile
-- command: syslab run pytorch_attention --preset paper
-- fills: a
-- columns: head_dim|1|d|right; seq|1|d|right; dtype?|1|s|left; pass|1|s|left; literal|ms|.3g|right;
--   softmax as softmax fused|ms|.3g|right; flash|ms|.3g|right; flash_name as by|1|code|left;
--   flash_graph as as a graph|ms|.3g|right; softmax_gain as softmax vs literal|×|ci(softmax_low, softmax_high)|right;
--   flash_gain as flash vs literal|×|ci(flash_low, flash_high)|right;
--   paired as speed-up from?|1|s|left; device?|1|s|left
-- note: `syslab run pytorch_attention --preset paper --protocol graph` adds the graphs. No row where `literal` ran out
--   of memory. `speed-up from`: whether all sides come from one run.
WITH t AS MATERIALIZED (
  SELECT v.* FROM v_measured v
   WHERE v.experiment = 'pytorch_attention' AND v.is_good AND NOT v.is_mine AND v.params ->> '$.pass' <> 'both'
),
flash AS (
  SELECT *, row_number() OVER (PARTITION BY case_id, comparability_key, protocol LIKE 'graph%'
                                   ORDER BY time_ms) AS place
    FROM t
   WHERE role IS NULL
)
SELECT l.params ->> '$.head_dim' AS head_dim, l.params ->> '$.seq' AS seq,
       l.params ->> '$.dtype' AS dtype, l.params ->> '$.pass' AS pass,
       l.time_ms AS literal, s.time_ms AS softmax, f.time_ms AS flash,
       f.implementation AS flash_name, g.time_ms AS flash_graph,
       l.time_ms / s.time_ms AS softmax_gain, l.low_ms / s.high_ms AS softmax_low, l.high_ms / s.low_ms AS softmax_high,
       l.time_ms / f.time_ms AS flash_gain, l.low_ms / f.high_ms AS flash_low, l.high_ms / f.low_ms AS flash_high,
       iif(coalesce(s.run_uid, l.run_uid) = l.run_uid AND coalesce(f.run_uid, l.run_uid) = l.run_uid,
           'one run', 'different runs') AS paired, l.device,
       max(l.run_uid, coalesce(s.run_uid, ''), coalesce(f.run_uid, '')) AS run_uid
  FROM t l
  LEFT JOIN t s ON s.case_id = l.case_id AND s.comparability_key = l.comparability_key AND s.protocol = l.protocol
               AND s.implementation = CASE l.implementation WHEN 'literal' THEN 'fused_softmax' ELSE 'naive_cuda' END
  LEFT JOIN flash f ON f.case_id = l.case_id AND f.comparability_key = l.comparability_key
                   AND f.protocol = l.protocol AND f.place = 1
  LEFT JOIN flash g ON g.case_id = l.case_id AND g.comparability_key = l.comparability_key
                   AND g.protocol = 'graph' AND g.place = 1
 WHERE l.role = 'literal' AND l.measured_here AND l.protocol NOT LIKE 'graph%'
 GROUP BY l.attempt_id
 ORDER BY l.device, dtype <> 'fp32', dtype, head_dim, seq, pass DESC;
