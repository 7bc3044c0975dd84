-- sentence: {implementation} on {ranks} ranks ({device}, protocol {protocol}): one fp32 all-reduce of {sizes} MB takes
--   {times} ms{more} (slowest rank{mean}{widest}). {fit}.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: implementation|1|code|left; ranks|1|d|right; device|1|s|left; protocol|1|s|left; sizes|1|s|left;
--   times|1|s|left; more|1|s|left; mean|1|s|left; widest|1|s|left; fit|1|s|left
WITH alike AS (
  SELECT v.*
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1 AND v.params ->> '$.operation' = 'all_reduce'
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal')
),
-- Of several machines with one kind of GPU the one that ran most numbers of ranks.
machine AS (
  SELECT comparability_key AS key, device,
         row_number() OVER (PARTITION BY device ORDER BY count(DISTINCT world_size) DESC, max(run_uid) DESC) AS place
    FROM alike
   GROUP BY comparability_key, device
),
point AS (
  SELECT v.*, v.params ->> '$.bytes' AS bytes,
         -- With the digits that the interval bears.
         CASE WHEN time_ms >= 99.5 THEN printf('%.0f', time_ms)
              WHEN high_ms - low_ms > time_ms AND time_ms < 9.5 THEN printf('%.1g', time_ms)
              WHEN high_ms - low_ms > 0.2 * time_ms THEN printf('%.2g', time_ms)
              ELSE printf('%.3g', time_ms) END AS said,
         row_number() OVER (PARTITION BY v.implementation, v.world_size, v.device, v.protocol
                                ORDER BY v.params ->> '$.bytes', v.attempt_uid) AS up,
         row_number() OVER (PARTITION BY v.implementation, v.world_size, v.device, v.protocol
                                ORDER BY v.params ->> '$.bytes' DESC, v.attempt_uid) AS down
    FROM alike v
   WHERE EXISTS (SELECT 1 FROM machine m WHERE m.key = v.comparability_key AND m.device = v.device AND m.place = 1)
),
queued AS (
  SELECT p.*, (SELECT q.value FROM metric q
                WHERE q.attempt_id = p.attempt_id AND q.name = 'pipelined' ORDER BY q.rank LIMIT 1) AS t
    FROM point p
),
-- The rate of the largest size, what the smallest takes beyond it, and the size between that takes longest beside both.
ends AS (
  SELECT small_id, large_id, small, large, alpha, rate,
         1e-9 * small_bytes * 2.0 * (world_size - 1) / world_size / rate AS at_rate,  -- of the rate as it is printed
         (SELECT json_object('more', max(m.t / (alpha + m.bytes * beta) - 1), 'bytes',
                             m.bytes, 't', m.t, 'sum', alpha + m.bytes * beta) FROM queued m
           WHERE m.implementation = x.implementation AND m.world_size = x.world_size
             AND m.device = x.device AND m.protocol = x.protocol) AS longest
    FROM (SELECT s.*, s.attempt_id AS small_id, g.attempt_id AS large_id, s.t AS small,
                 g.t AS large, g.t / g.bytes AS beta, s.t - s.bytes * g.t / g.bytes AS alpha,
                 s.bytes AS small_bytes,
                 CAST(printf('%.3g', 1e-9 * g.bytes * 2.0 * (g.world_size - 1) / g.world_size / g.t) AS REAL) AS rate
            FROM queued s
            JOIN queued g ON g.implementation = s.implementation AND g.world_size = s.world_size
                         AND g.device = s.device AND g.protocol = s.protocol AND g.down = 1
           WHERE s.up = 1 AND g.bytes > s.bytes) x
)
SELECT a.implementation, a.world_size AS ranks, a.device, a.protocol,
       (SELECT group_concat(printf('%.4g', bytes * 1e-6), ', ') FROM (SELECT * FROM point ORDER BY up) p
         WHERE p.implementation = a.implementation AND p.world_size = a.world_size
           AND p.device = a.device AND p.protocol = a.protocol) AS sizes,
       (SELECT group_concat(said, ', ') FROM (SELECT * FROM point ORDER BY up) p
         WHERE p.implementation = a.implementation AND p.world_size = a.world_size
           AND p.device = a.device AND p.protocol = a.protocol) AS times,
       -- The same sizes on more ranks.
       coalesce((SELECT group_concat(printf(', on %d ranks %s ms', ranks, times), '')
                   FROM (SELECT world_size AS ranks, group_concat(bytes) AS sizes, group_concat(said, ', ') AS times
                           FROM (SELECT * FROM point
                                  WHERE implementation = a.implementation
                                    AND device = a.device AND protocol = a.protocol
                                    AND world_size > a.world_size ORDER BY world_size, bytes)
                          GROUP BY world_size)
                  WHERE sizes = (SELECT group_concat(bytes)
                                   FROM (SELECT bytes FROM point p WHERE p.implementation = a.implementation
                                                                     AND p.world_size = a.world_size
                                                                     AND p.device = a.device AND p.protocol = a.protocol
                                          ORDER BY bytes))), '') AS more,
       -- An interval that is longer than the time itself.
       coalesce((SELECT printf('; 95 %% interval at %.4g MB: %.3g to %.3g', p.bytes * 1e-6, p.low_ms, p.high_ms)
                   FROM point p
                  WHERE p.implementation = a.implementation AND p.world_size = a.world_size
                    AND p.device = a.device AND p.protocol = a.protocol AND p.high_ms > 2 * p.time_ms
                  ORDER BY p.high_ms / p.time_ms DESC LIMIT 1), '') AS widest,
       coalesce((SELECT printf('; mean of ranks up to %.2g %% less', 100 * max(1 - mean / slowest))
                   FROM (SELECT avg(m.value) AS mean, 1e-3 * p.time_ms AS slowest
                           FROM point p JOIN metric m ON m.attempt_id = p.attempt_id AND m.name = 'time' AND m.rank >= 0
                          WHERE p.implementation = a.implementation AND p.world_size = a.world_size
                            AND p.device = a.device AND p.protocol = a.protocol
                          GROUP BY p.attempt_id
                         HAVING count(*) = a.world_size)
                 HAVING max(1 - mean / slowest) > 0), '') AS mean,
       CASE WHEN l.alpha IS NULL THEN 'There are too few sizes for a fit'
            WHEN NOT l.fits
              THEN printf('α + S/β does not fit the back-to-back times (off by up to %.2g %%), so neither is given',
                          100 * l.worst)
            -- A line that misses the sizes between says nothing of the machine's rate: then the ends do.
            WHEN l.worst > 0.05 AND e.alpha > 0
              THEN printf('Queued back to back, the largest moves at %.3g GB/s; the smallest takes %s instead of '
                          || '%s at that rate: latency is about %d %% of it and %s %% of the largest%s', e.rate,
                          iif(e.small < 1e-3, printf(iif(e.small < 99.5e-6, '%.2g µs', '%.0f µs'), 1e6 * e.small),
                              printf(iif(e.small < 99.5e-3, '%.2g ms', '%.0f ms'), 1e3 * e.small)),
                          iif(e.at_rate < 1e-3, printf(iif(e.at_rate < 99.5e-6, '%.2g µs', '%.0f µs'), 1e6 * e.at_rate),
                              printf(iif(e.at_rate < 99.5e-3, '%.2g ms', '%.0f ms'), 1e3 * e.at_rate)),
                          10 * round(10 * e.alpha / e.small),
                          iif(e.alpha < 0.095 * e.large,
                              printf('%.1g', 100 * e.alpha / e.large), printf('%.0f', 100 * e.alpha / e.large)),
                          iif(e.longest ->> '$.more' > 0.05,
                              printf('. For %.4g MB their sum is %.2g %% too low, so it does not reach that rate',
                                     1e-6 * (e.longest ->> '$.bytes'), 100 * (1 - 1 / (1 + (e.longest ->> '$.more')))),
                              ''))
            ELSE printf('%sA line through %d sizes queued back to back has %s a call and %.3g GB/s: '
                        || 'by it latency is %.2g %% of the smallest and %.2g %% of the largest (%s)',
                        iif(l.alpha > a.bytes * l.per_byte AND l.alpha < b.bytes * l.per_byte,
                            'The smallest message is bound by latency, the largest by bandwidth. ', ''),
                        l.sizes,
                        iif(l.alpha < 1e-3, printf('%.3g µs', 1e6 * l.alpha), printf('%.3g ms', 1e3 * l.alpha)),
                        1e-9 / l.per_byte, 100 * l.alpha / (l.alpha + a.bytes * l.per_byte),
                        100 * l.alpha / (l.alpha + b.bytes * l.per_byte),
                        iif(l.sizes > 2 OR l.alpha = 0, printf('off by up to %.2g %%', 100 * l.worst),
                            'two sizes leave no error to judge it by')) END AS fit, b.run_uid
  FROM point a
  JOIN point b ON b.implementation = a.implementation AND b.world_size = a.world_size AND b.device = a.device
              AND b.protocol = a.protocol AND b.down = 1
  LEFT JOIN ends e ON e.small_id = a.attempt_id AND e.large_id = b.attempt_id
  LEFT JOIN v_transfer_law l ON l.operation = 'all_reduce' AND l.series = 'pipelined'
                            AND l.implementation = a.implementation
                            AND l.ranks = a.world_size AND l.comparability_key = a.comparability_key
                            AND l.protocol IS a.protocol
 WHERE a.up = 1 AND b.bytes > a.bytes
 ORDER BY a.device, a.protocol, a.world_size, a.implementation;
