-- title: Rank counts not measured
-- caption: Sizes measured on some rank counts but not on 2, 4, 6 or 8, with the reason and the command.
-- experiment: distributed_communication_single_node
-- columns: implementation|1|code|left; operation?|1|s|left; ranks|1|d|right; sizes as bytes|1|s|left; why|1|s|left;
--   command|1|code|left; protocol?|1|s|left; device?|1|s|left
-- empty: None: all sizes were measured on all rank counts.
-- note: `tools/gpu_rows` measures 2, 4, 6 and 8 GPUs in a bounded time.
WITH one AS MATERIALIZED (
  SELECT *, params ->> '$.operation' AS operation, params ->> '$.bytes' AS bytes
    FROM v_measured
   WHERE experiment = ?1 AND world_size > 1
),
wanted AS (
  SELECT DISTINCT o.operation, o.bytes, o.implementation, o.protocol, o.device, o.comparability_key, n.column1 AS ranks
    FROM one o CROSS JOIN (VALUES (2), (4), (6), (8)) n
   WHERE o.is_good
),
missing AS (
  SELECT w.*, coalesce(max(coalesce(o.message, o.status)), 'not run') AS why, max(o.run_uid) AS run_uid
    FROM wanted w
    LEFT JOIN one o ON o.operation = w.operation AND o.bytes = w.bytes
                   AND o.implementation = w.implementation AND o.protocol IS w.protocol
                   AND o.comparability_key = w.comparability_key AND o.world_size = w.ranks
   GROUP BY w.operation, w.bytes, w.implementation, w.protocol, w.comparability_key, w.ranks
  HAVING coalesce(sum(o.is_good), 0) = 0
   ORDER BY w.bytes
)
SELECT implementation, operation, ranks, group_concat(bytes, ', ') AS sizes, why,
       printf('syslab run %s -a operation=%s -a world_size=%d -a bytes=%s --impl %s%s',
              ?1, operation, ranks, group_concat(bytes, ','),
              implementation, iif(protocol = 'cs336', '', ' --protocol ' || protocol)) AS command,
       protocol, device, max(run_uid) AS run_uid
  FROM missing
 WHERE implementation NOT LIKE '% (%' AND protocol NOT LIKE '%, version %'
 GROUP BY implementation, operation, ranks, why, protocol, device, comparability_key
 ORDER BY device, protocol, operation <> 'all_reduce', operation, implementation, ranks;
