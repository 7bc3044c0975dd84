-- sentence: The fused kernels are {kernels}. The grid has a block for each tile of queries of each head and batch row;
--   it loops once over tiles of keys, keeps maximum, sum and O in fp32 registers, casts P to V's dtype before the
--   second product, O when written, and writes L.{laws}{error}
-- experiment: flash_forward
-- command: syslab check flash_forward
-- fills: b
-- columns: kernels|1|s|left; laws|1|s|left; error|1|s|left
WITH rungs AS MATERIALIZED (
  SELECT *, device = 'cuda' AND facts ->> '$.role' IS NULL AND facts ->> '$.variant_of' IS NULL AS is_kernel FROM v_rung
),
-- The laws that were searched on all kernels that every newer GPU runs.
tried AS (
  SELECT c.law, c.implementation, sum(cases_run) AS cases, max(c.run_uid) AS run_uid, min(outcome = 'passed') AS passed,
         max(r.dtypes) AS dtypes, max(r.works) AS works
    FROM v_coverage c
    JOIN rungs r ON r.run_uid = c.run_uid AND r.experiment = c.experiment AND r.implementation = c.implementation
   WHERE c.experiment = ?1 AND NOT is_mine AND measured_here AND r.is_kernel AND r.is_general AND NOT r.tf32
     AND law IN ('attention.equals_oracle', 'attention.lse_equals_oracle', 'attention.causal_prefix',
                 'attention.rows_sum_to_one', 'attention.large_scores', 'attention.half_no_worse_than_naive')
   GROUP BY c.law, c.implementation
),
passed AS (SELECT * FROM tried WHERE passed),
-- Of every comparison of a measurement with fp64, by dtype.
errors AS (
  SELECT p.implementation, params ->> '$.dtype' AS dtype, substr(property, instr(property, ':') + 1) AS output,
         max(ratio) AS worst, worst_error AS error, tolerance, is_kernel  -- these: of the worst ratio
    FROM v_properties p
    JOIN rungs r ON r.run_uid = p.run_uid AND r.experiment = p.experiment AND r.implementation = p.implementation
   WHERE p.experiment IN ('flash_forward', 'flash_benchmarking') AND NOT is_mine
     AND measured_here AND outcome = 'passed' AND status <> 'error'
     AND property IN ('reference:out', 'reference:lse', 'samples:out', 'samples:lse')
   GROUP BY p.implementation, dtype, output
)
SELECT (SELECT group_concat(printf('`%s` (%s%s)', implementation, dtypes, coalesce(', ' || works, '')), ' and ')
          FROM (SELECT implementation, max(dtypes) AS dtypes, max(works) AS works FROM passed GROUP BY implementation
                 ORDER BY dtypes)) AS kernels,
       -- fp32 has no half precision to be judged: six of the seven.
       (SELECT iif(count(*) >= 5
                   AND NOT EXISTS (SELECT 1 FROM tried
                                    WHERE NOT passed
                                      AND NOT (dtypes = 'fp32' AND law = 'attention.half_no_worse_than_naive')),
                   ' No law of (a) found a counterexample.',
                   printf(' Of the laws of (a) %d found no counterexample, on %d random inputs each.',
                          count(*), min(cases)))
          FROM (SELECT law, min(cases) AS cases FROM passed GROUP BY law
                HAVING count(*) = (SELECT count(DISTINCT implementation) FROM passed))) AS laws,
       coalesce((SELECT ' Errors nearest their bound, against fp64 (bound): ' ||
                        group_concat(printf('`%s` (%s) O %.2g (%.2g), L %.2g (%.2g)', o.implementation,
                                            o.dtype, o.error, o.tolerance, l.error, l.tolerance), '; ') || '.'
                   FROM (SELECT * FROM errors
                          WHERE output = 'out' AND implementation IN (SELECT implementation FROM passed)
                          ORDER BY implementation DESC, dtype) o
                   JOIN errors l ON l.implementation = o.implementation AND l.dtype = o.dtype AND l.output = 'lse'
                 HAVING count(*) > 0),
                '')
         -- And of those that benchmarks use beside them, of which no law asks.
         || coalesce((SELECT ' Of kernels used elsewhere: '
                               || group_concat(printf('`%s` (%s) O %.2g (%.2g)',
                                                      implementation, dtype, error, tolerance), ', ') || '.'
                        FROM (SELECT * FROM errors
                               WHERE output = 'out' AND is_kernel
                                 AND implementation NOT IN (SELECT implementation FROM passed)
                               ORDER BY implementation DESC, dtype)
                      HAVING count(*) > 0), '') AS error,
       (SELECT max(run_uid) FROM passed) AS run_uid
 WHERE EXISTS (SELECT 1 FROM passed);
