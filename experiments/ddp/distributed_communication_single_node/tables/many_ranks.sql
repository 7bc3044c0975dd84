-- sentence: {implementation} on the CPU (ranks share cores): on {ranks} ranks an all-reduce of
--   {times}{growth}.{missing}
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: implementation|1|code|left; ranks|1|s|left; times|1|s|left; growth|1|s|left; missing|1|s|left
WITH one AS MATERIALIZED (
  SELECT v.*, v.params ->> '$.bytes' AS bytes
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND NOT v.is_mine
     AND v.world_size > 1 AND v.params ->> '$.operation' = 'all_reduce'
     AND (v.gpu_name IS NULL OR v.device <> v.gpu_name)
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal')
),
size AS (
  SELECT implementation, comparability_key, protocol, bytes, count(*) AS many,
         group_concat(world_size, ', ') AS ranks, min(world_size) AS fewest, max(world_size) AS most,
         printf('%.4g MB: ', bytes * 1e-6)
           || group_concat(CASE WHEN time_ms >= 99.5 THEN printf('%.0f', time_ms)
                                WHEN high_ms - low_ms > time_ms AND time_ms < 9.5 THEN printf('%.1g', time_ms)
                                WHEN high_ms - low_ms > 0.2 * time_ms THEN printf('%.2g', time_ms)
                                ELSE printf('%.3g', time_ms) END, ', ') || ' ms' AS times,
         max(iif(down = 1, time_ms, NULL)) / max(iif(up = 1, time_ms, NULL)) AS growth, max(run_uid) AS run_uid
    FROM (SELECT *, row_number() OVER (PARTITION BY implementation, comparability_key, protocol, bytes
                                           ORDER BY world_size) AS up,
                 row_number() OVER (PARTITION BY implementation, comparability_key, protocol, bytes
                                        ORDER BY world_size DESC) AS down
            FROM one
           ORDER BY world_size)
   GROUP BY implementation, comparability_key, protocol, bytes
  HAVING count(*) > 1
)
-- The sizes that most numbers of ranks have.
SELECT s.implementation, s.ranks,
       replace(group_concat(replace(s.times, ':', iif(s.up = 1, ' takes', '')), '|'), '|', ', of ') AS times,
       printf(': about %s times as long on %d as on %d (ring: %.3g and %.3g)',
              group_concat(printf(iif(s.growth < 9.95, '%.2g', '%.0f'), s.growth), ' and '), s.most, s.fewest,
              (s.most - 1.0) / (s.fewest - 1), (s.most - 1.0) / s.most * s.fewest / (s.fewest - 1)) AS growth,
       coalesce((SELECT printf(' %s %s.',
                               -- Who stopped the run at one of them gave the reason.
                               iif(EXISTS (SELECT 1 FROM v_attempt o
                                            WHERE o.experiment = ?1 AND o.implementation = s.implementation
                                              AND o.comparability_key = s.comparability_key
                                              AND o.status = 'aborted'),
                                   'The run was stopped before', 'Not run:'),
                               group_concat(printf('%s MB on %s', mb, ranks), ' and '))
                   FROM (SELECT m.column1 AS mb, group_concat(r.column1, ', ') AS ranks
                           FROM (VALUES (1), (10), (100), (1000)) m CROSS JOIN (VALUES (2), (4), (6)) r
                          WHERE NOT EXISTS (SELECT 1 FROM one o
                                             WHERE o.implementation = s.implementation
                                               AND o.comparability_key = s.comparability_key
                                               AND o.bytes = m.column1 * 1000000 AND o.world_size = r.column1)
                          GROUP BY m.column1
                          ORDER BY m.column1)
                 HAVING count(*) > 0), '') AS missing, max(s.run_uid) AS run_uid
  FROM (SELECT *,
               row_number() OVER (PARTITION BY implementation, comparability_key, protocol, ranks ORDER BY bytes) AS up
          FROM size ORDER BY bytes) s
 WHERE s.many = (SELECT max(x.many) FROM size x
                  WHERE x.implementation = s.implementation AND x.comparability_key = s.comparability_key)
 GROUP BY s.implementation, s.comparability_key, s.protocol, s.ranks
 ORDER BY s.implementation <> 'gloo', s.implementation, max(s.many) DESC,
          count(*) DESC, s.comparability_key, s.protocol, s.ranks
 LIMIT 1;
