-- title: Latency and bandwidth that the times follow
-- caption: α and β of t = α + S / β over the sizes measured, by least squares of the relative error, no α below zero; `bus` is β times
--   the factor of bus bandwidth; `worst` is how far the law is from a measured time at most.
-- experiment: distributed_communication_single_node
-- columns: operation?|1|s|left; ranks|1|d|right; implementation|1|code|left; series|1|s|left; sizes|1|d|right;
--   smallest|B|d|right; largest|B|d|right; alpha as α|µs|.3g|right; beta as β|GB/s|.3g|right; bus|GB/s|.3g|right; worst|%|.2g|right;
--   protocol?|1|s|left; device?|1|s|left
-- empty: Times of two sizes at least make a law; `syslab run distributed_communication_single_node` would tell.
-- note: A summary, no forecast: times between the sizes can be percents off, which is more than plans differ by.
WITH point AS (
  SELECT v.params ->> '$.operation' AS operation, v.world_size AS ranks, v.implementation, v.protocol, v.device, v.row_order,
         v.run_uid, s.name AS series, b.value AS x, m.value AS t
    FROM v_measured v
    JOIN (SELECT 'time' AS name UNION ALL SELECT 'pipelined') s
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = s.name AND m.value > 0
                 AND m.rank = (SELECT min(q.rank) FROM metric q WHERE q.attempt_id = v.attempt_id AND q.name = s.name)
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'payload_bytes' AND b.rank = 0
   WHERE v.experiment = ?1 AND v.is_good
),
sums AS (
  SELECT operation, ranks, implementation, protocol, device, row_order, series, count(DISTINCT x) AS sizes, max(run_uid) AS run_uid,
         min(x) AS smallest, max(x) AS largest,
         sum(1 / (t * t)) AS s1, sum(x / (t * t)) AS sx, sum(x * x / (t * t)) AS sxx, sum(1 / t) AS sy, sum(x / t) AS sxy
    FROM point
   GROUP BY operation, ranks, implementation, protocol, device, row_order, series
),
free AS (
  SELECT *, (s1 * sxy - sx * sy) / nullif(s1 * sxx - sx * sx, 0) AS slope FROM sums WHERE sizes > 1
),
law AS (
  SELECT *, iif((sy - slope * sx) / s1 >= 0, (sy - slope * sx) / s1, 0) AS alpha,
         iif((sy - slope * sx) / s1 >= 0, slope, sxy / sxx) AS per_byte
    FROM free
)
SELECT l.operation, l.ranks, l.implementation, iif(l.series = 'time', 'one at a time', 'back to back') AS series, l.sizes,
       l.smallest, l.largest, 1e6 * l.alpha AS alpha, 1e-9 / nullif(l.per_byte, 0) AS beta,
       1e-9 / nullif(l.per_byte, 0)
         * CASE l.operation WHEN 'all_reduce' THEN 2.0 * (l.ranks - 1) / l.ranks WHEN 'broadcast' THEN 1
                            ELSE 1.0 * (l.ranks - 1) / l.ranks END AS bus,
       100 * max(abs((l.alpha + p.x * l.per_byte) / p.t - 1)) AS worst, l.protocol, l.device, l.run_uid
  FROM law l
  JOIN point p USING (operation, ranks, implementation, protocol, device, series)
 WHERE l.per_byte > 0
 GROUP BY l.operation, l.ranks, l.implementation, l.protocol, l.device, l.series
 ORDER BY l.operation <> 'all_reduce', l.operation, l.ranks, l.row_order, l.series DESC;
