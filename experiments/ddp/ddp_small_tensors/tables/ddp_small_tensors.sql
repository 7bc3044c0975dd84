-- title: Bucketing many small tensors
-- caption: Exposed communication, slowest rank of each step, and what s/(n·w) + n·o predicts with o and w measured on
--   the same ranks just before.
-- about best: `best` is the predicted best bucket size.
-- experiment: ddp_small_tensors
-- columns: tensors|1|d|right; tensor_bytes as bytes each|B|d|right; pace?|1|.3g|right; ranks|1|d|right;
--   bucket_kb as bucket limit|KiB|d|right; buckets as all-reduces|1|d|right;
--   exposed|ms|ci(exposed_low, exposed_high)|right; forecast|ms|.3g|right; o|µs|.3g|right; w|GB/s|.3g|right;
--   best|KiB|.3g|right; backward|ms|.3g|right; time_ms as time|ms|ci(low_ms, high_ms)|right; n|1|d|right;
--   noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: Ranks sleep where a device would compute, and wake up late; on fewer processors than ranks communication takes
--   turns.
WITH v AS (
  SELECT *, metrics AS found
    FROM v_measured t
   WHERE experiment = ?1 AND status <> 'skipped'
)
SELECT v.params ->> '$.tensors' AS tensors, v.params ->> '$.tensor_bytes' AS tensor_bytes,
       v.params ->> '$.pace' AS pace, v.world_size AS ranks,
       v.params ->> '$.bucket_kb' AS bucket_kb, v.found ->> '$.buckets' AS buckets,
       1e3 * e.value AS exposed, 1e3 * e.ci_low AS exposed_low,
       1e3 * e.ci_high AS exposed_high, 1e3 * (v.found ->> '$.forecast_exposed') AS forecast,
       1e6 * (v.found ->> '$.overhead') AS o,
       v.found ->> '$.rate' AS w, (v.found ->> '$.best_bucket_bytes') / 1024.0 AS best,
       1e3 * (v.found ->> '$.backward') AS backward, v.time_ms,
       v.low_ms, v.high_ms, v.n, v.noise, v.protocol, v.device, v.status,
       v.message, v.facts -> '$.needs' AS needs, v.run_uid
  FROM v
  LEFT JOIN metric e ON e.attempt_id = v.attempt_id AND e.name = 'exposed' AND e.rank = -1 AND v.ending IS NOT 'failed'
 ORDER BY tensors, tensor_bytes, pace, ranks, bucket_kb;
