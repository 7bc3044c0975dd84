-- figure: lines
-- title: Communication overhead of many small tensors
-- caption: Exposed communication over bucket size with its 95 % interval, slowest rank of each step, and the formula
--   with o and w measured just before each case.
-- experiment: ddp_small_tensors
-- x: bytes|B|log2
-- y: exposed|ms|log10
-- interval: low, high
-- series: series
-- panel: tensors, tensor_bytes, pace, ranks, device
WITH one AS (
  SELECT v.attempt_id, v.params ->> '$.tensors' AS tensors,
         v.params ->> '$.tensor_bytes' AS tensor_bytes, v.params ->> '$.pace' AS pace,
         v.world_size AS ranks, v.device, v.run_uid, b.value AS bytes, f.value AS forecast
    FROM v_measured v
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'bucket_bytes' AND b.rank = 0
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forecast_exposed' AND f.rank = 0
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1
)
SELECT o.bytes, 1e3 * e.value AS exposed, 1e3 * e.ci_low AS low,
       1e3 * e.ci_high AS high, 'measured' AS series, o.tensors, o.tensor_bytes, o.pace,
       o.ranks, o.device, 'ok' AS status, o.run_uid
  FROM one o
  JOIN metric e ON e.attempt_id = o.attempt_id AND e.name = 'exposed' AND e.rank = -1
 UNION ALL
SELECT bytes, 1e3 * forecast, NULL, NULL, 'formula', tensors, tensor_bytes, pace, ranks, device, 'ok', run_uid
  FROM one
 ORDER BY series DESC, bytes;
