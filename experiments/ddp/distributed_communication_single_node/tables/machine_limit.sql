-- sentence: Measured on {ranks} GPUs, not on {others}. More data costs its bytes over the
--   bandwidth; each more rank a step of latency, while a rank sends 2(n − 1)/n of the bytes, at most twice
--   those of 2 ranks.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: ranks|1|s|left; others|1|s|left
WITH here AS (
  SELECT DISTINCT world_size AS n, comparability_key, run_uid
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND world_size > 1 AND gpu_name IS NOT NULL AND params ->> '$.operation' = 'all_reduce'
)
SELECT (SELECT group_concat(n, ', ') FROM (SELECT DISTINCT n FROM here ORDER BY n)) AS ranks,
       (SELECT group_concat(column1, ' and ') FROM (VALUES (4), (6)) WHERE column1 > (SELECT max(n) FROM here)) AS others,
       (SELECT max(run_uid) FROM here) AS run_uid
 WHERE EXISTS (SELECT 1 FROM here) AND (SELECT max(n) FROM here) < 6;
