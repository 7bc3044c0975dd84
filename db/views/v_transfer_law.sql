-- A row an operation, number of ranks, back end and way of calling (`series`: time, one call at a time; pipelined, back
-- to back): the law t = alpha + bytes · per_byte (seconds) that distributed_communication_single_node's times follow,
-- by least squares of the relative error, no alpha below zero. Sizes whose samples have two modes are in no fit:
-- `left_out` names them. `worst`: the law's largest relative error at a fitted size; `fits`: it is at most a quarter.
CREATE VIEW v_transfer_law AS
WITH point AS MATERIALIZED (
  SELECT v.params ->> '$.operation' AS operation, v.world_size AS ranks, v.implementation, v.protocol, v.device,
         v.comparability_key, v.row_order, v.run_uid, s.name AS series, b.value AS x, m.value AS t,
         EXISTS (SELECT 1 FROM json_each(v.facts, iif(s.name = 'time', '$.noise', '$.' || s.name || '.noise')) j
                  WHERE j.value = 'bimodal') AS two_modes
    FROM v_measured v
    JOIN (SELECT 'time' AS name UNION ALL SELECT 'pipelined') s
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = s.name AND m.value > 0
                 AND m.rank = (SELECT min(q.rank) FROM metric q WHERE q.attempt_id = v.attempt_id AND q.name = s.name)
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'payload_bytes' AND b.rank = 0
   WHERE v.experiment = 'distributed_communication_single_node' AND v.is_good
),
sums AS (
  SELECT operation, ranks, implementation, protocol, device, comparability_key, row_order, series,
         count(DISTINCT x) AS sizes, max(run_uid) AS run_uid, min(x) AS smallest, max(x) AS largest,
         sum(1 / (t * t)) AS s1, sum(x / (t * t)) AS sx,
         sum(x * x / (t * t)) AS sxx, sum(1 / t) AS sy, sum(x / t) AS sxy
    FROM point
   WHERE NOT two_modes
   GROUP BY operation, ranks, implementation, protocol, device, comparability_key, row_order, series
),
free AS (
  SELECT *, (s1 * sxy - sx * sy) / nullif(s1 * sxx - sx * sx, 0) AS slope FROM sums WHERE sizes > 1
),
law AS (
  SELECT *, iif((sy - slope * sx) / s1 >= 0, (sy - slope * sx) / s1, 0) AS alpha,
         iif((sy - slope * sx) / s1 >= 0, slope, sxy / sxx) AS per_byte
    FROM free
)
SELECT l.operation, l.ranks, l.implementation, l.series, l.protocol,
       l.device, l.comparability_key, l.row_order, l.run_uid,
       l.sizes, l.smallest, l.largest, l.alpha, l.per_byte, max(abs((l.alpha + p.x * l.per_byte) / p.t - 1)) AS worst,
       max(abs((l.alpha + p.x * l.per_byte) / p.t - 1)) <= 0.25 AS fits,
       (SELECT group_concat(bytes, ', ')
          FROM (SELECT DISTINCT printf('%d', q.x) AS bytes
                  FROM point q
                 WHERE q.two_modes AND q.operation = l.operation
                   AND q.ranks = l.ranks AND q.implementation = l.implementation
                   AND q.protocol IS l.protocol AND q.device = l.device AND q.comparability_key = l.comparability_key
                   AND q.series = l.series
                 ORDER BY q.x)) AS left_out
  FROM law l
  JOIN point p USING (operation, ranks, implementation, protocol, device, comparability_key, series)
 WHERE l.per_byte > 0 AND NOT p.two_modes
 GROUP BY l.operation, l.ranks, l.implementation, l.protocol, l.device, l.comparability_key, l.series;
