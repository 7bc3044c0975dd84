-- title: All-reduce and other collectives on one machine
-- caption: Median time of single calls with its 95 % interval, and of a call among 20 back to back; slowest rank.
-- about algbw, busbw: `algbw` is bytes over time, `busbw` that times 2(n−1)/n for all_reduce, (n−1)/n for
--   reduce_scatter and all_gather and 1 for broadcast (nccl-tests).
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: operation?|1|s|left; ranks|1|d|right; bytes|B|d|right; implementation|1|code|left;
--   time_ms as time|ms|ci(low_ms, high_ms)|right; pipelined|ms|ci(pipelined_low, pipelined_high)|right;
--   algbw|GB/s|.3g|right; busbw|GB/s|.3g|right; busbw_pipelined as busbw, pipelined|GB/s|.3g|right;
--   vs_peer as vs baseline?|×|ci(vs_peer_low, vs_peer_high)|right; peer as baseline?|1|code|left;
--   vs_from as speed-up from?|1|s|left; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left;
--   status|1|status|left
-- note: Samples with a fast and a slow mode are not averaged: `time` gives the median of each with its share of the
--   samples, `pipelined` says so, and there is no bandwidth.
WITH m AS MATERIALIZED (
  SELECT v.*, EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal') AS two_modes,
         EXISTS (SELECT 1 FROM json_each(v.facts, '$.pipelined.noise') j WHERE j.value = 'bimodal') AS pipelined_two
    FROM v_measured v
   WHERE v.experiment = ?1
),
-- A sample of several ranks is the slowest's; the modes lie on both sides of the widest gap in the middle 80 %.
sorted AS (
  SELECT attempt_id, value, row_number() OVER up AS place, count(*) OVER (PARTITION BY attempt_id) AS n,
         lead(value) OVER up - value AS gap
    FROM (SELECT m.attempt_id, max(x.value) AS value
            FROM m
            JOIN series s ON s.attempt_id = m.attempt_id AND s.name = 'time' AND s.unit = 's'
            JOIN sample x ON x.series_id = s.id
           WHERE m.two_modes
           GROUP BY m.attempt_id, x.launch, x.idx)
  WINDOW up AS (PARTITION BY attempt_id ORDER BY value)
),
cut AS (
  SELECT attempt_id, n, place AS fast, row_number() OVER (PARTITION BY attempt_id ORDER BY gap DESC) AS widest
    FROM sorted
   WHERE place BETWEEN n / 10 AND n - n / 10 - 1
),
modes AS (
  SELECT c.attempt_id, printf('%.3g (%d %%) and %.3g (%d %%)',
                              1e3 * max(s.value) FILTER (WHERE s.place = (c.fast + 1) / 2), round(100.0 * c.fast / c.n),
                              1e3 * max(s.value) FILTER (WHERE s.place = c.fast + (c.n - c.fast + 1) / 2),
                              100 - round(100.0 * c.fast / c.n)) AS both
    FROM cut c
    JOIN sorted s ON s.attempt_id = c.attempt_id
   WHERE c.widest = 1
   GROUP BY c.attempt_id
)
SELECT v.params ->> '$.operation' AS operation, v.world_size AS ranks,
       v.params ->> '$.bytes' AS bytes, v.implementation,
       iif(v.two_modes, coalesce(modes.both, 'two modes'), v.time_ms) AS time_ms, v.low_ms, v.high_ms,
       iif(v.pipelined_two, 'two modes', 1e3 * p.value) AS pipelined, 1e3 * p.ci_low AS pipelined_low,
       1e3 * p.ci_high AS pipelined_high, iif(v.two_modes, '–', b.value * 1e-6 / v.time_ms) AS algbw,
       iif(v.two_modes, '–', b.value * 1e-6 / v.time_ms * f.value) AS busbw,
       iif(v.pipelined_two, '–', b.value * 1e-9 / p.value * f.value) AS busbw_pipelined,
       iif(v.two_modes, '–', v.vs_peer) AS vs_peer, v.vs_peer_low, v.vs_peer_high, v.peer, v.vs_from, v.n,
       v.noise, v.protocol, v.device, v.status, v.message, v.facts -> '$.needs' AS needs, v.run_uid
  FROM m v
  LEFT JOIN modes ON modes.attempt_id = v.attempt_id
  LEFT JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'pipelined' AND v.ending IS NOT 'failed'
                    AND p.rank = (SELECT min(q.rank) FROM metric q
                                   WHERE q.attempt_id = v.attempt_id AND v.status <> 'error' AND q.name = 'pipelined')
  LEFT JOIN metric b ON b.attempt_id = v.attempt_id AND v.status <> 'error' AND b.name = 'payload_bytes' AND b.rank = 0
  LEFT JOIN metric f ON f.attempt_id = v.attempt_id AND v.status <> 'error' AND f.name = 'bus_factor' AND f.rank = 0
 ORDER BY operation <> 'all_reduce', operation, ranks, bytes, v.row_order;
