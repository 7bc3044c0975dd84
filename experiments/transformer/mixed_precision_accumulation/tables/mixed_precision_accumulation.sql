-- title: Mixed precision accumulation
-- caption: The sum of so many `additions` of 0.01, exact to the bit; nothing is timed.
-- experiment: mixed_precision_accumulation
-- fills: *
-- columns: case_name|1|code|left; accumulator|1|s|left; addend|1|s|left; additions|1|d|right; value|1|.10f|right;
--   error|1|.2e|right; last_change|1|d|right; bits|1|code|left; implementation|1|code|left; agrees as sums|1|s|left;
--   device?|1|s|left; status|1|status|left
-- note: `last change`: last addition that changed the sum; below `additions` the sum stalled.
-- note: `sums` equal to the bit: bit-identical to all other implementations; `reference` computes in integers.
WITH t AS (
  SELECT * FROM v_newest WHERE experiment = 'mixed_precision_accumulation' AND task = 'measure'
)
SELECT t.params ->> '$.case' AS case_name, t.facts ->> '$.accumulator' AS accumulator, t.facts ->> '$.addend' AS addend,
       t.params ->> '$.additions' AS additions,
       max(m.value) FILTER (WHERE m.name = 'value') AS value, max(m.value) FILTER (WHERE m.name = 'error') AS error,
       max(m.value) FILTER (WHERE m.name = 'last_change') AS last_change, t.facts ->> '$.bits' AS bits,
       t.implementation,
       CASE WHEN NOT t.checked THEN 'not compared'
            WHEN t.gpu_name IS NOT NULL
              OR EXISTS (SELECT 1 FROM check_result c WHERE c.attempt_id = t.attempt_id AND c.name = 'gpu:bits')
              THEN 'equal on CPU and GPU to the bit'
            ELSE 'equal in floats and in integers to the bit' END AS agrees,
       coalesce(t.gpu_name, t.cpu_model, 'unknown') AS device, t.status, t.message, t.run_uid
  FROM t
  LEFT JOIN metric m ON m.attempt_id = t.attempt_id AND t.status <> 'error'
 GROUP BY t.attempt_id
 ORDER BY additions, CASE case_name WHEN 'fp32' THEN 1 WHEN 'fp16' THEN 2 WHEN 'fp32_fp16_direct' THEN 3
                                    WHEN 'fp32_fp16_converted' THEN 4 ELSE 5 END, t.implementation, device;
