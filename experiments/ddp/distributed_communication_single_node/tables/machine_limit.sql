-- sentence: In a ring of n ranks latency should grow as 2(n − 1), transfer time as 2(n − 1)/n.{growth} {limit}
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: limit|1|s|left; growth|1|s|left
WITH here AS (
  SELECT DISTINCT world_size AS n, gpu_name IS NOT NULL AND device = gpu_name AS on_gpus, run_uid
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND world_size > 1 AND params ->> '$.operation' = 'all_reduce'
),
-- Back to back on the fewest and on the most GPUs of a machine.
queued AS (
  SELECT v.comparability_key AS key, v.implementation, v.protocol, v.world_size AS n,
         v.params ->> '$.bytes' AS bytes, m.value AS t, m.ci_low AS low, m.ci_high AS high
    FROM v_measured v
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = 'pipelined' AND m.rank = -1 AND m.ci_high IS NOT NULL
   WHERE v.experiment = ?1 AND v.is_good AND NOT v.is_mine AND v.world_size > 1
     AND v.params ->> '$.operation' = 'all_reduce' AND v.device = v.gpu_name
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.pipelined.noise') j WHERE j.value = 'bimodal')
),
grown AS (
  SELECT a.key, a.implementation, a.protocol, a.n AS few, b.n AS many,
         a.bytes, b.t / a.t AS ratio, b.low > a.high AS longer,
         row_number() OVER (PARTITION BY a.key, a.implementation, a.protocol ORDER BY b.n - a.n DESC, a.bytes) AS small,
         row_number() OVER (PARTITION BY a.key, a.implementation, a.protocol
                                ORDER BY b.n - a.n DESC, a.bytes DESC) AS large
    FROM queued a
    JOIN queued b ON b.key = a.key AND b.implementation = a.implementation
                 AND b.protocol IS a.protocol AND b.bytes = a.bytes AND b.n > a.n
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
SELECT CASE WHEN possible IS NOT NULL
              THEN printf('%s GPUs were not tried%s.', possible, coalesce(', and no machine had ' || impossible, ''))
            WHEN on_cpu IS NULL THEN printf('More ranks were not run: the machines had %d GPUs at most.', gpus)
            ELSE printf('No machine had more than %d GPUs, so %s ranks ran on the CPU alone%s.',
                        gpus, on_cpu, coalesce(' and ' || nowhere || ' not at all', '')) END AS "limit",
       coalesce((SELECT printf(' From %d to %d GPUs (ring: %.3g and %.3g times) %.4g MB back to back takes %s, '
                               || '%.4g MB %.3g times as long.', s.few, s.many, (s.many - 1.0) / (s.few - 1),
                               (s.many - 1.0) / s.many * s.few / (s.few - 1), 1e-6 * s.bytes,
                               iif(s.longer, printf('%.3g times as long', s.ratio), 'no measurably longer'),
                               1e-6 * g.bytes, g.ratio)
                   FROM grown s
                   JOIN grown g ON g.key = s.key AND g.implementation = s.implementation
                               AND g.protocol IS s.protocol AND g.few = s.few AND g.many = s.many
                  WHERE s.small = 1 AND g.large = 1 AND g.bytes > s.bytes AND g.longer
                  ORDER BY s.many - s.few DESC, s.key, s.implementation, s.protocol LIMIT 1), '') AS growth,
       (SELECT max(run_uid) FROM here) AS run_uid
  FROM measured, machines, left_out
 WHERE most < 6;
