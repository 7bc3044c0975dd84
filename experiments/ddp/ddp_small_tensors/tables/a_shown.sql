-- sentence: With {tensors} tensors of {tensor_bytes} bytes on {ranks} ranks ({device}, backward as long as its
--   all-reduces) {small} ms are exposed by {most_calls} all-reduces, {large} by {fewest_calls} and the least, {least},
--   by {calls} (limit {limit} KiB). The formula of (b) {agreement}.
-- experiment: ddp_small_tensors
-- fills: a
-- columns: tensors|1|d|right; tensor_bytes|B|d|right; ranks|1|d|right; device|1|s|left; most_calls|1|d|right;
--   small|ms|.3g|right; calls|1|d|right; limit|KiB|d|right; least|ms|.3g|right; large|ms|.3g|right;
--   fewest_calls|1|s|left; agreement|1|s|left
WITH one AS (
  SELECT v.params ->> '$.tensors' AS tensors, v.params ->> '$.tensor_bytes' AS tensor_bytes,
         v.params ->> '$.bucket_kb' AS bucket_kb,
         v.world_size AS ranks, v.device, v.protocol, v.run_uid,
         v.metrics ->> '$.exposed' AS exposed, v.metrics ->> '$.buckets' AS buckets,
         v.metrics ->> '$.forecast_exposed' AS forecast,
         v.metrics ->> '$.overhead' AS o, v.metrics ->> '$.rate' AS w
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1 AND v.params ->> '$.pace' = 1
     AND v.metrics ->> '$.exposed' IS NOT NULL
),
placed AS (
  SELECT *, row_number() OVER (same ORDER BY exposed) AS place,
         row_number() OVER (same ORDER BY forecast, bucket_kb) AS forecast_place,
         row_number() OVER (same ORDER BY buckets) AS few,
         row_number() OVER (same ORDER BY buckets DESC) AS many, count(*) OVER same AS sizes,
         min(sqrt(tensors * tensor_bytes * 1e9 * w * o)) OVER same / 1024 AS least_best,
         max(sqrt(tensors * tensor_bytes * 1e9 * w * o)) OVER same / 1024 AS most_best
    FROM one
  WINDOW same AS (PARTITION BY tensors, tensor_bytes, ranks, device, protocol)
)
SELECT b.tensors, b.tensor_bytes, b.ranks, b.device, s.buckets AS most_calls,
       1e3 * s.exposed AS small, b.buckets AS calls, b.bucket_kb AS "limit",
       1e3 * b.exposed AS least, 1e3 * l.exposed AS large,
       iif(l.buckets = 1, 'one', printf('%d', l.buckets)) AS fewest_calls,
       CASE WHEN f.bucket_kb = b.bucket_kb THEN 'has its least at this limit, too'
            WHEN b.bucket_kb BETWEEN b.least_best / 2 AND 2 * b.most_best
              THEN printf('has its least at %d KiB, which is as near as o and w are known', f.bucket_kb)
            ELSE 'misses it, probably because a call under backward costs less than one alone (not measured)'
            END AS agreement, b.run_uid
  FROM placed b
  JOIN placed s USING (tensors, tensor_bytes, ranks, device, protocol)
  JOIN placed l USING (tensors, tensor_bytes, ranks, device, protocol)
  JOIN placed f USING (tensors, tensor_bytes, ranks, device, protocol)
 WHERE b.place = 1 AND s.many = 1 AND l.few = 1 AND f.forecast_place = 1 AND b.sizes > 2
 ORDER BY b.device, b.ranks, b.tensors;
