-- sentence: The fused kernels are {kernels}. The grid has a block for each tile of queries of each head and batch row; it loops once over tiles
--   of keys, keeps maximum, sum and O in fp32 registers, casts P to V's dtype before the second product, O when written, and writes L.{laws}{error}
-- experiment: flash_forward
-- command: syslab check flash_forward
-- fills: b
-- columns: kernels|1|s|left; laws|1|s|left; error|1|s|left
WITH kernels AS (
  SELECT column1 AS implementation, column2 AS what
    FROM (VALUES ('flash_mma', '`flash_mma` (bf16, fp16)'), ('flash_fp32', '`flash_fp32` (fp32, each number in two halves, multiplied in three products)'))
),
-- The laws that were searched on all kernels.
tried AS (
  SELECT law, implementation, sum(cases_run) AS cases, max(run_uid) AS run_uid, min(outcome = 'passed') AS passed
    FROM v_coverage
   WHERE experiment = ?1 AND NOT is_mine AND measured_here AND implementation IN (SELECT implementation FROM kernels)
     AND law IN ('attention.equals_oracle', 'attention.lse_equals_oracle', 'attention.causal_prefix', 'attention.rows_sum_to_one', 'attention.large_scores', 'attention.half_no_worse_than_naive')
   GROUP BY law, implementation
),
passed AS (SELECT * FROM tried WHERE passed),
-- Of every comparison of a measurement with fp64, by dtype.
errors AS (
  SELECT implementation, params ->> '$.dtype' AS dtype, substr(property, instr(property, ':') + 1) AS output,
         max(ratio) AS worst, worst_error AS error, tolerance  -- error and tolerance: of the worst ratio
    FROM v_properties
   WHERE experiment IN ('flash_forward', 'flash_benchmarking') AND NOT is_mine AND measured_here AND outcome = 'passed' AND status <> 'error'
     AND property IN ('reference:out', 'reference:lse', 'samples:out', 'samples:lse')
   GROUP BY implementation, dtype, output
)
SELECT (SELECT group_concat(what, ' and ') FROM kernels k WHERE k.implementation IN (SELECT implementation FROM passed)) AS kernels,
       -- fp32 has no half precision to be judged: six of the seven.
       (SELECT iif(count(*) >= 5 AND NOT EXISTS (SELECT 1 FROM tried WHERE NOT passed AND NOT (implementation = 'flash_fp32' AND law = 'attention.half_no_worse_than_naive')),
                   ' No law of (a) found a counterexample.',
                   printf(' Of the laws of (a) %d found no counterexample, on %d random inputs each.', count(*), min(cases)))
          FROM (SELECT law, min(cases) AS cases FROM passed GROUP BY law HAVING count(*) = (SELECT count(DISTINCT implementation) FROM passed))) AS laws,
       coalesce((SELECT ' Errors nearest their bound, against fp64 (bound): ' ||
                        group_concat(printf('`%s` (%s) O %.2g (%.2g), L %.2g (%.2g)', o.implementation, o.dtype, o.error, o.tolerance, l.error, l.tolerance), '; ') || '.'
                   FROM (SELECT * FROM errors WHERE output = 'out' AND implementation IN (SELECT implementation FROM passed) ORDER BY implementation DESC, dtype) o
                   JOIN errors l ON l.implementation = o.implementation AND l.dtype = o.dtype AND l.output = 'lse'
                 HAVING count(*) > 0),
                '')
         -- And of those that benchmarks use beside them, of which no law asks.
         || coalesce((SELECT ' Of kernels used elsewhere: ' || group_concat(printf('`%s` (%s) O %.2g (%.2g)', implementation, dtype, error, tolerance), ', ') || '.'
                        FROM (SELECT * FROM errors WHERE output = 'out' AND implementation IN ('flash_wgmma', 'flash_tf32') AND implementation NOT IN (SELECT implementation FROM passed)
                               ORDER BY implementation DESC, dtype)
                      HAVING count(*) > 0), '') AS error,
       (SELECT max(run_uid) FROM passed) AS run_uid
 WHERE EXISTS (SELECT 1 FROM passed);
