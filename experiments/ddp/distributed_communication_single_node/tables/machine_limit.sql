-- sentence: {limit} In a ring of n ranks latency should grow as 2(n − 1), transfer time as 2(n − 1)/n, by 5 and 1.67 from 2 to 6.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: limit|1|s|left
WITH here AS (
  SELECT DISTINCT world_size AS n, gpu_name IS NOT NULL AND device = gpu_name AS on_gpus, run_uid
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND world_size > 1 AND params ->> '$.operation' = 'all_reduce'
),
measured AS (SELECT max(n) AS most FROM here WHERE on_gpus),
machines AS (SELECT max(json_array_length(facts, '$.gpu')) AS gpus FROM v_environment),
left_out AS (
  SELECT group_concat(iif(column1 <= (SELECT gpus FROM machines), column1, NULL), ' and ') AS possible,
         group_concat(iif(column1 > (SELECT gpus FROM machines), column1, NULL), ' and ') AS impossible,
         group_concat(iif(column1 IN (SELECT n FROM here WHERE NOT on_gpus), column1, NULL), ' and ') AS on_cpu,
         group_concat(iif(column1 IN (SELECT n FROM here WHERE NOT on_gpus), NULL, column1), ' and ') AS nowhere
    FROM (VALUES (4), (6))
   WHERE column1 > (SELECT most FROM measured)
)
SELECT CASE WHEN gpus > most THEN printf('%s GPUs were not tried%s.', possible, coalesce(', and no machine had ' || impossible, ''))
            WHEN on_cpu IS NULL THEN printf('More ranks were not run: the machines had %d GPUs at most.', gpus)
            ELSE printf('The machines had %d GPUs at most, so %s ranks ran on the CPU alone%s.', gpus, on_cpu, coalesce(' and ' || nowhere || ' not at all', '')) END AS "limit",
       (SELECT max(run_uid) FROM here) AS run_uid
  FROM measured, machines, left_out
 WHERE most < 6;
