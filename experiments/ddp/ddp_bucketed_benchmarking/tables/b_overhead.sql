-- sentence: With s bytes of gradients in n buckets, bandwidth w and o seconds per call, if a bucket is computed as fast
--   as it is communicated, the first all-reduce starts after s/(n·w), each takes s/(n·w) + o, and backward ends at s/w:
--   overhead = s/(n·w) + n·o. It is least, 2·√(s·o/w), at n = √(s/(w·o)), that is at bucket size √(s·w·o). For {law} on
--   {ranks} ranks ({device}, back to back) and the {s} of gradients of {model} ({sent}) {numbers}.{beside}
-- experiment: ddp_bucketed_benchmarking
-- fills: b
-- command: syslab run distributed_communication_single_node {experiment}
-- columns: law|1|code|left; ranks|1|d|right; device|1|s|left; s|GiB|.4b|right; model|1|s|left; sent|1|s|left;
--   numbers|1|s|left; beside|1|s|left
WITH steps AS MATERIALIZED (
  SELECT strategy, bucket_mb, buckets, exposed, backward, gradient_bytes, model, wire, ranks,
         backend, device, protocol, implementation, comparability_key, alike, point, run_uid
    FROM v_data_parallel
   WHERE experiment = ?1 AND is_good
),
queued AS (
  SELECT v.implementation, v.world_size, v.comparability_key, v.protocol, v.params ->> '$.bytes' AS bytes,
         (SELECT m.value FROM metric m
           WHERE m.attempt_id = v.attempt_id AND m.name = 'pipelined' ORDER BY m.rank LIMIT 1) AS t
    FROM v_measured v
   WHERE v.experiment = 'distributed_communication_single_node'
     AND v.is_good AND v.params ->> '$.operation' = 'all_reduce'
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal')
),
-- Where a line misses the sizes by more than 5 %: the rate of the largest size and what the smallest takes beyond it,
-- as factors.sql of the collectives has it.
ends AS (
  SELECT DISTINCT implementation, world_size, comparability_key, protocol,
         last_value(t) OVER up / last_value(bytes) OVER up AS per_byte,
         first_value(t) OVER up AS t, first_value(bytes) OVER up AS bytes
    FROM queued
  WINDOW up AS (PARTITION BY implementation, world_size, comparability_key, protocol
                    ORDER BY bytes ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
fitted AS (
  SELECT DISTINCT l.implementation AS law, v.ranks, v.device,
                  iif(l.worst > 0.05 AND e.t > e.bytes * e.per_byte, e.t - e.bytes * e.per_byte, l.alpha) AS o,
                  iif(l.worst > 0.05 AND e.t > e.bytes * e.per_byte, e.per_byte, l.per_byte) AS per_byte, l.fits,
                  l.worst, v.gradient_bytes AS bytes, v.model, v.wire, v.comparability_key AS machine, v.run_uid
    FROM steps v
    JOIN v_transfer_law l ON l.operation = 'all_reduce' AND l.series = 'pipelined' AND l.ranks = v.ranks
                         AND l.comparability_key = v.comparability_key AND l.implementation = v.backend
    LEFT JOIN ends e ON e.implementation = l.implementation AND e.world_size = l.ranks
                    AND e.comparability_key = l.comparability_key AND e.protocol = l.protocol
   WHERE v.strategy = 'bucketed'
   GROUP BY v.model, v.gradient_bytes, v.wire, v.ranks, v.device, l.implementation
)
SELECT law, ranks, device, 1e6 * o AS o, 1e-9 / per_byte AS w, bytes / 1073741824.0 AS s,
       model, iif(wire = 'own', 'uncompressed', 'in ' || wire) AS sent,
       iif(fits AND o > 0, sqrt(bytes * per_byte / o), NULL) AS n,
       iif(fits AND o > 0, sqrt(bytes * o / per_byte) / 1073741824, NULL) AS best,
       CASE WHEN NOT fits
              THEN printf('no best size follows: α + S/β is off by up to %.2g %% at the measured sizes', 100 * worst)
            WHEN o = 0 THEN printf('w = %.3g GB/s and no cost of a call is seen, so no number of buckets is best',
                                   1e-9 / per_byte)
            ELSE printf('o = %.3g µs and w = %.3g GB/s were measured: n = %.3g, %.3g MiB a bucket, %.3g ms',
                        1e6 * o, 1e-9 / per_byte, sqrt(bytes * per_byte / o),
                        sqrt(bytes * o / per_byte) / 1048576, 2e3 * sqrt(bytes * per_byte * o)) END AS numbers,
       -- What it gives at the ends of (a), beside what was exposed there; and why, where its premise does not hold.
       iif(fits AND o > 0,
           coalesce((SELECT printf(' For the %d calls at %d MiB it gives %.2g ms, and %.2g ms were exposed in (a); '
                                   || 'for the %d calls at %d MiB it gives %.2g ms, and %.2g ms were exposed%s.',
                                   g.buckets, g.bucket_mb, 1e3 * (f.bytes * per_byte / g.buckets + g.buckets * o),
                                   g.exposed, l.buckets, l.bucket_mb,
                                   1e3 * (f.bytes * per_byte / l.buckets + l.buckets * o), l.exposed,
                                   iif(n.backward > 2e3 * f.bytes * per_byte AND l.exposed < 5e2 * l.buckets * o,
                                       printf(': backward takes %.3g ms, not s/w = %.3g, so small calls hide under it',
                                              n.backward, 1e3 * f.bytes * per_byte), ''))
                       FROM steps l
                       JOIN steps g ON g.strategy = 'bucketed' AND g.point = l.point
                                   AND g.comparability_key = l.comparability_key
                                   AND g.ranks = l.ranks AND g.protocol IS l.protocol
                                   AND g.implementation = l.implementation AND g.bucket_mb > l.bucket_mb
                       JOIN steps n ON n.strategy = 'none' AND n.alike = l.alike
                                   AND n.comparability_key = l.comparability_key
                                   AND n.ranks = l.ranks AND n.protocol IS l.protocol
                                   AND n.implementation = l.implementation
                      WHERE l.strategy = 'bucketed' AND l.comparability_key = f.machine
                        AND l.model = f.model AND l.ranks = f.ranks AND l.wire = f.wire
                        AND l.backend = f.law
                      ORDER BY g.bucket_mb - l.bucket_mb DESC LIMIT 1), ''), '') AS beside,
       run_uid
  FROM fitted f
 ORDER BY device, model, ranks, wire <> 'own', wire;
