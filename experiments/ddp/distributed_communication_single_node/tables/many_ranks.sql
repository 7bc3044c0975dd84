-- sentence: {implementation} on the CPU, where ranks share cores and memory: an all-reduce of {mb} MB takes {times} ms on {ranks} ranks.{missing}
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: implementation|1|code|left; mb|1|s|right; times|1|s|left; ranks|1|s|left; missing|1|s|left
WITH one AS MATERIALIZED (
  SELECT v.*, v.params ->> '$.bytes' AS bytes
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND NOT v.is_mine AND v.world_size > 1 AND v.params ->> '$.operation' = 'all_reduce'
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal')
),
-- The largest size of those that most numbers of ranks have.
size AS (
  SELECT implementation, comparability_key, protocol, bytes, count(DISTINCT world_size) AS many, max(run_uid) AS run_uid
    FROM one
   WHERE gpu_name IS NULL OR device <> gpu_name
   GROUP BY implementation, comparability_key, protocol, bytes
  HAVING count(DISTINCT world_size) > 1
)
SELECT s.implementation, printf('%.4g', s.bytes * 1e-6) AS mb,
       (SELECT group_concat(printf('%.3g', time_ms), ', ') FROM (SELECT * FROM one ORDER BY world_size) o
         WHERE o.implementation = s.implementation AND o.comparability_key = s.comparability_key AND o.protocol = s.protocol AND o.bytes = s.bytes) AS times,
       (SELECT group_concat(world_size, ', ') FROM (SELECT * FROM one ORDER BY world_size) o
         WHERE o.implementation = s.implementation AND o.comparability_key = s.comparability_key AND o.protocol = s.protocol AND o.bytes = s.bytes) AS ranks,
       coalesce((SELECT printf(' Not run: %s.', group_concat(printf('%s MB on %s', mb, ranks), '; '))
                   FROM (SELECT m.column1 AS mb, group_concat(r.column1, ', ') AS ranks
                           FROM (VALUES (1), (10), (100), (1000)) m CROSS JOIN (VALUES (2), (4), (6)) r
                          WHERE NOT EXISTS (SELECT 1 FROM one o WHERE o.implementation = s.implementation AND o.comparability_key = s.comparability_key AND o.bytes = m.column1 * 1000000 AND o.world_size = r.column1)
                          GROUP BY m.column1
                          ORDER BY m.column1)
                 HAVING count(*) > 0), '') AS missing, s.run_uid
  FROM size s
 ORDER BY s.implementation <> 'gloo', s.implementation, s.many DESC, s.bytes DESC
 LIMIT 1;
