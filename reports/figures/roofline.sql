-- figure: roofline
-- title: Roofline
-- caption: Rate over arithmetic intensity (FLOP per byte of compulsory traffic) under the measured ceilings: memory
--   bandwidth of the fastest copy, peak of the fastest matrix product in the same dtype.
-- x: intensity|FLOP/B|log10
-- y: rate|TFLOP/s|log10
-- roof: bandwidth|peak
-- series: implementation
-- panel: dtype, device
-- note: Points above the roof are cache hits.
-- note: Drawn only where both ceilings were measured on the same kind of machine (`syslab run ceiling_copy
--   ceiling_gemm`).
-- optional: yes
WITH ceiling AS MATERIALIZED (SELECT comparability_key, metric, dtype AS of_dtype, value FROM v_ceiling)
SELECT 1e3 * m.tflops / m.gbps AS intensity, m.tflops AS rate, copy.value AS bandwidth, gemm.value AS peak,
       m.implementation || iif(m.is_mine, ' (mine)', '') AS implementation, m.params ->> '$.dtype' AS dtype, m.device,
       m.status, m.run_uid
  FROM v_measured m
  JOIN ceiling copy ON copy.comparability_key = m.comparability_key AND copy.metric = 'gbps'
  JOIN ceiling gemm ON gemm.comparability_key = m.comparability_key AND gemm.metric = 'tflops'
                        AND gemm.of_dtype = m.params ->> '$.dtype'
 WHERE m.experiment = ?1 AND m.is_good AND m.gbps > 0 AND m.tflops > 0 AND m.role IS NOT 'reference'
 ORDER BY dtype <> 'fp32', dtype, m.device, m.row_order, intensity;
