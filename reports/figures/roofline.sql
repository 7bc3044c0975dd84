-- figure: roofline
-- title: Beside what this machine can do
-- caption: Rate over arithmetic intensity (operations for each byte of compulsory traffic). The roof is measured here, too:
--   its slope the largest copy, its flat part the fastest matrix product in the same dtype.
-- x: intensity|FLOP/B|log10
-- y: rate|TFLOP/s|log10
-- roof: bandwidth|peak
-- series: implementation
-- panel: dtype, device
-- note: A point far below the roof has room to grow; no honest point is above it, but one whose data stays in the caches
--   may pass the slope.
-- optional: yes
WITH ceiling AS MATERIALIZED (
  SELECT comparability_key, experiment, params ->> '$.dtype' AS dtype, tflops, gbps,
         row_number() OVER (PARTITION BY comparability_key, experiment
                                ORDER BY params ->> '$.bytes' DESC, gbps DESC) AS largest
    FROM v_measured
   WHERE experiment IN ('ceiling_copy', 'ceiling_gemm') AND is_good
)
SELECT 1e3 * m.tflops / m.gbps AS intensity, m.tflops AS rate,
       (SELECT c.gbps FROM ceiling c WHERE c.comparability_key = m.comparability_key AND c.experiment = 'ceiling_copy'
                                       AND c.largest = 1) AS bandwidth,
       (SELECT max(c.tflops) FROM ceiling c WHERE c.comparability_key = m.comparability_key
                                              AND c.experiment = 'ceiling_gemm'
                                              AND c.dtype = m.params ->> '$.dtype') AS peak,
       m.implementation || iif(m.is_mine, ' (mine)', '') AS implementation, m.params ->> '$.dtype' AS dtype, m.device,
       m.status, m.run_uid
  FROM v_measured m
 WHERE m.experiment = ?1 AND m.is_good AND m.gbps > 0 AND m.tflops > 0 AND m.implementation <> 'reference'
 ORDER BY dtype <> 'fp32', dtype, m.device, m.row_order, intensity;
