-- figure: roofline
-- title: Beside what this machine can do
-- caption: Rate over arithmetic intensity (operations for each byte of compulsory traffic). The roof is measured here, too:
--   its slope is the fastest copy beyond the caches, its flat part the fastest matrix product in the same dtype.
-- x: intensity|FLOP/B|log10
-- y: rate|TFLOP/s|log10
-- roof: bandwidth|peak
-- series: implementation
-- panel: dtype, device
-- note: A point far below the roof has room to grow; no honest point is above it, but one whose data stays in the caches
--   may pass the slope.
-- optional: yes
WITH ceiling AS MATERIALIZED (SELECT comparability_key, metric, dtype AS of_dtype, value FROM v_ceiling)
SELECT 1e3 * m.tflops / m.gbps AS intensity, m.tflops AS rate, copy.value AS bandwidth, gemm.value AS peak,
       m.implementation || iif(m.is_mine, ' (mine)', '') AS implementation, m.params ->> '$.dtype' AS dtype, m.device,
       m.status, m.run_uid
  FROM v_measured m
  LEFT JOIN ceiling copy ON copy.comparability_key = m.comparability_key AND copy.metric = 'gbps'
  LEFT JOIN ceiling gemm ON gemm.comparability_key = m.comparability_key AND gemm.metric = 'tflops'
                        AND gemm.of_dtype = m.params ->> '$.dtype'
 WHERE m.experiment = ?1 AND m.is_good AND m.gbps > 0 AND m.tflops > 0 AND m.implementation <> 'reference'
 ORDER BY dtype <> 'fp32', dtype, m.device, m.row_order, intensity;
