-- sentence: {limit}{growth} In a ring of n ranks latency should grow as 2(n − 1), transfer time as 2(n − 1)/n.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: limit|1|s|left; growth|1|s|left
WITH tenfold AS (  -- what ten times the bytes take on a machine's GPUs: far less than ten times the time where latency dominates
  SELECT a.params ->> '$.bytes' AS bytes, b.time_ms / a.time_ms AS factor,
         dense_rank() OVER (ORDER BY a.world_size, a.comparability_key, a.implementation, a.protocol) AS machine
    FROM v_measured a
    JOIN v_measured b ON b.experiment = ?1 AND b.is_good AND b.params ->> '$.operation' = 'all_reduce' AND b.params ->> '$.bytes' = 10 * (a.params ->> '$.bytes')
                     AND b.world_size = a.world_size AND b.implementation = a.implementation AND b.comparability_key = a.comparability_key AND b.protocol IS a.protocol
   WHERE a.experiment = ?1 AND a.is_good AND a.world_size > 1 AND a.params ->> '$.operation' = 'all_reduce' AND a.device = a.gpu_name
),
here AS (
  SELECT DISTINCT world_size AS n, gpu_name IS NOT NULL AND device = gpu_name AS on_gpus, run_uid
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND world_size > 1 AND params ->> '$.operation' = 'all_reduce'
),
measured AS (SELECT max(n) AS most FROM here WHERE on_gpus),
machines AS (SELECT max(json_array_length(facts, '$.gpu')) AS gpus FROM v_environment),
left_out AS (
  SELECT group_concat(column1, ' and ') AS others,
         group_concat(iif(column1 IN (SELECT n FROM here WHERE NOT on_gpus), column1, NULL), ' and ') AS on_cpu,
         group_concat(iif(column1 IN (SELECT n FROM here WHERE NOT on_gpus), NULL, column1), ' and ') AS nowhere
    FROM (VALUES (4), (6))
   WHERE column1 > (SELECT most FROM measured)
)
SELECT CASE WHEN gpus > most THEN printf('Measured on %s GPUs, not on %s.', (SELECT group_concat(n, ', ') FROM (SELECT DISTINCT n FROM here WHERE on_gpus ORDER BY n)), others)
            WHEN on_cpu IS NULL THEN printf('More ranks were not run: the machines had %d GPUs at most.', gpus)
            ELSE printf('The machines had %d GPUs at most, so %s ranks ran on the CPU alone%s.', gpus, on_cpu, coalesce(' and ' || nowhere || ' not at all', '')) END AS "limit",
       coalesce((SELECT printf(' On GPUs ten times the bytes take %s times as long: latency dominates the small.', group_concat(printf('%.2g', factor), ', '))
                   FROM (SELECT * FROM tenfold WHERE machine = 1 ORDER BY bytes)
                 HAVING count(*) > 1 AND min(factor) < 5 AND max(factor) > 5), '') AS growth,
       (SELECT max(run_uid) FROM here) AS run_uid
  FROM measured, machines, left_out
 WHERE most < 6;
