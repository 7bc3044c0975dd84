-- sentence: {model} in {precision}, {batch} × {context} tokens on {ranks} ranks ({backend}, gradients {sent}, {device},
--   protocol {protocol}, {implementation}): a step takes {naive_ms} ms naive, {time_ms} ms flat with copies ({verdict})
--   and {views_ms} ms flat with gradients in one buffer from the start ({views_verdict}). Communication takes {naive},
--   {exposed} and {of_views} ms. {why}{runs}
-- experiment: minimal_ddp_flat_benchmarking
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; sent|1|s|left; device|1|s|left; protocol|1|s|left; implementation|1|code|left;
--   exposed|ms|.3g|right; of_views|ms|.3g|right; naive|ms|.3g|right; time_ms|ms|ci(low_ms, high_ms)|right;
--   views_ms|ms|ci(views_low, views_high)|right; naive_ms|ms|ci(naive_low, naive_high)|right; verdict|1|s|left;
--   views_verdict|1|s|left; why|1|s|left; runs|1|s|left
WITH queued AS (
  SELECT v.implementation, v.world_size, v.comparability_key, v.params ->> '$.bytes' AS bytes,
         (SELECT m.value FROM metric m
           WHERE m.attempt_id = v.attempt_id AND m.name = 'pipelined' ORDER BY m.rank LIMIT 1) AS t
    FROM v_measured v
   WHERE v.experiment = 'distributed_communication_single_node'
     AND v.is_good AND v.params ->> '$.operation' = 'all_reduce'
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal')
),
-- What the smallest message takes beyond the rate of the largest, in ms, as factors.sql of the collectives has it.
latency AS (
  SELECT s.implementation, s.world_size, s.comparability_key, 1e3 * (s.t - s.bytes * max(g.t / g.bytes)) AS ms
    FROM queued s
    JOIN queued g ON g.implementation = s.implementation AND g.world_size = s.world_size
                 AND g.comparability_key = s.comparability_key
                 AND g.bytes = (SELECT max(x.bytes) FROM queued x
                                 WHERE x.implementation = s.implementation AND x.world_size = s.world_size
                                   AND x.comparability_key = s.comparability_key)
   WHERE s.bytes = (SELECT min(x.bytes) FROM queued x
                     WHERE x.implementation = s.implementation AND x.world_size = s.world_size
                       AND x.comparability_key = s.comparability_key)
   GROUP BY s.implementation, s.world_size, s.comparability_key
),
d AS MATERIALIZED (
  SELECT *, row_number() OVER (PARTITION BY point, ranks, comparability_key, protocol, implementation, strategy
                                   ORDER BY experiment <> ?1, run_order DESC) AS place
    FROM v_data_parallel
   WHERE experiment IN (?1, 'naive_ddp_benchmarking') AND is_good AND strategy IN ('naive', 'flat_copy', 'flat_view')
)
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend,
       iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS sent, v.device,
       v.protocol, v.implementation, v.exposed, w.exposed AS of_views,
       n.exposed AS naive, v.time_ms, v.low_ms, v.high_ms,
       w.time_ms AS views_ms, w.low_ms AS views_low, w.high_ms AS views_high,
       n.time_ms AS naive_ms, n.low_ms AS naive_low, n.high_ms AS naive_high,
       CASE WHEN v.high_ms < n.low_ms THEN 'faster' WHEN v.low_ms > n.high_ms THEN 'slower'
            WHEN v.high_ms IS NULL OR n.high_ms IS NULL THEN 'too few samples for an interval'
            ELSE 'no measurable difference' END AS verdict,
       CASE WHEN w.high_ms < n.low_ms THEN 'faster' WHEN w.low_ms > n.high_ms THEN 'slower'
            WHEN w.high_ms IS NULL OR n.high_ms IS NULL THEN 'too few samples for an interval'
            ELSE 'no measurable difference' END AS views_verdict,
       CASE WHEN n.exposed > w.exposed
              THEN printf('One large call is %.3g ms faster than %d small ones of the same bytes%s%s',
                          n.exposed - w.exposed, n.buckets,
                          CASE WHEN l.ms IS NULL OR l.ms <= 0 THEN ', probably because it pays one latency and '
                                                                   || 'sends at full bandwidth (not measured)'
                               WHEN l.ms * (n.buckets - w.buckets) < 0.9 * (n.exposed - w.exposed)
                                 THEN printf(iif(l.ms * (n.buckets - w.buckets) < 9.5,
                                                 ': %d latencies of about %.2g µs less (back to '
                                                 || 'back on this machine) are about %.1g ms of it, '
                                                 || 'the rest is probably the lower rate of small messages',
                                                 ': %d latencies of about %.2g µs less (back to '
                                                 || 'back on this machine) are about %.0f ms of it, '
                                                 || 'the rest is probably the lower rate of small messages'),
                                             n.buckets - w.buckets, 1e3 * l.ms, l.ms * (n.buckets - w.buckets))
                               ELSE printf(', as %d latencies of %.3g µs explain (%.2g ms)',
                                           n.buckets - w.buckets, 1e3 * l.ms, l.ms * (n.buckets - w.buckets)) END,
                          iif(v.exposed > w.exposed,
                              iif(v.low_ms > w.high_ms,
                                  printf('. Packing into the buffer and back adds %.3g ms to the step.',
                                         v.time_ms - w.time_ms),
                                  printf('. Packing into the buffer and back adds %.3g ms to communication.',
                                         v.exposed - w.exposed)), '.'))
            ELSE 'The same bytes move, and at these sizes the latency of a call is small beside them.' END AS why,
       iif(v.run_uid = n.run_uid AND v.run_uid = w.run_uid,
           '', ' The steps are from different runs on one machine.') AS runs,
       max(v.run_uid, w.run_uid, n.run_uid) AS run_uid
  FROM d v
  JOIN d w ON w.point = v.point AND w.ranks = v.ranks AND w.protocol IS v.protocol
          AND w.comparability_key = v.comparability_key
          AND w.implementation = v.implementation AND w.strategy = 'flat_view' AND w.place = 1
  JOIN d n ON n.point = v.point AND n.ranks = v.ranks AND n.protocol IS v.protocol
          AND n.comparability_key = v.comparability_key
          AND n.implementation = v.implementation AND n.strategy = 'naive' AND n.place = 1
  LEFT JOIN latency l ON l.implementation = v.backend AND l.world_size = v.ranks
                     AND l.comparability_key = v.comparability_key
 WHERE v.strategy = 'flat_copy' AND v.place = 1
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.backend, v.wire <> 'own', v.wire;
