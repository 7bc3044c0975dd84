-- sentence: {implementation} on the CPU: an all-reduce of {mb} MB takes {times} ms on {ranks} ranks{beside}.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: implementation|1|code|left; mb|1|s|right; times|1|s|left; ranks|1|s|left; beside|1|s|left
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
       coalesce((SELECT printf(', versus %.3g ms with `nccl` on 2 GPUs', n.time_ms) FROM one n
                  WHERE n.implementation = 'nccl' AND n.world_size = 2 AND n.bytes = s.bytes ORDER BY n.run_started_at DESC LIMIT 1), '') AS beside, s.run_uid
  FROM size s
 ORDER BY s.implementation <> 'gloo', s.implementation, s.many DESC, s.bytes DESC
 LIMIT 1;
