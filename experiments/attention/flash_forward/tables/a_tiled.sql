-- sentence: {implementation} is {works} over tiles of {tile}, with a running maximum and sum. It saves Q, K, V, O
--   and the log-sum-exp L of each row for backward. Tested on {cases} random inputs each: {laws}.{error}
-- experiment: flash_forward
-- command: syslab check flash_forward
-- fills: a
-- columns: implementation|1|code|left; works|1|s|left; tile|1|s|left; cases|1|d|right; laws|1|s|left; error|1|s|left
WITH tests AS (
  SELECT implementation, group_concat(name, ', ') AS laws, min(cases) AS cases, max(run_uid) AS run_uid
    FROM (SELECT implementation, CASE substr(law, instr(law, '.') + 1)
                WHEN 'equals_oracle' THEN 'O matches fp64'
                WHEN 'lse_equals_oracle' THEN 'L likewise'
                WHEN 'causal_prefix' THEN 'masked keys change nothing'
                WHEN 'rows_sum_to_one' THEN 'rows of P sum to 1'
                WHEN 'large_scores' THEN 'scores of ±10⁴ do not overflow'
                WHEN 'half_no_worse_than_naive' THEN 'half precision errs at most twice as much as unfused' END AS name,
                 sum(cases_run) AS cases, max(run_uid) AS run_uid
            FROM v_coverage
           WHERE experiment = ?1 AND NOT is_mine AND measured_here
             AND law IN ('attention.equals_oracle', 'attention.lse_equals_oracle', 'attention.causal_prefix',
                         'attention.rows_sum_to_one', 'attention.large_scores', 'attention.half_no_worse_than_naive')
           GROUP BY implementation, law
          HAVING min(outcome = 'passed') = 1
           ORDER BY implementation, law NOT LIKE '%equals_oracle', law)
   GROUP BY implementation
),
-- Of every comparison with fp64, in measurements and in the tests' random cases.
errors AS (
  SELECT implementation,
         CASE property WHEN 'attention.equals_oracle' THEN 'out' WHEN 'attention.lse_equals_oracle' THEN 'lse'
                       ELSE substr(property, instr(property, ':') + 1) END AS output,
         -- Error and tolerance: of the worst ratio.
         max(ratio) AS worst, worst_error AS error, tolerance, sum(cases_run) AS times
    FROM v_properties
   WHERE experiment IN ('flash_forward', 'flash_benchmarking') AND NOT is_mine
     AND measured_here AND outcome = 'passed' AND status <> 'error'
     AND property IN ('reference:out', 'reference:lse', 'samples:out', 'samples:lse',
                      'attention.equals_oracle', 'attention.lse_equals_oracle')
   GROUP BY implementation, output
)
SELECT t.implementation, r.works,
       (SELECT printf('%s (%s)', f.value, f.unit)
          FROM rung_fact f
          JOIN run n ON n.id = f.run_id
         WHERE n.uid = r.run_uid AND f.experiment = ?1
           AND f.rung = r.implementation AND f.fact = 'forward_tile') AS tile,
       t.cases, replace(t.laws, 'O matches fp64, L likewise', 'O and L match fp64') AS laws,
       coalesce((SELECT printf(' Errors nearest their bound, against fp64 (bound): O %.2g (%.2g), L %.2g (%.2g). '
                               || 'The bound is 4√n·u times the value for n roundings of u each.',
                        o.error, o.tolerance, l.error, l.tolerance)
                   FROM errors o JOIN errors l ON l.implementation = o.implementation AND l.output = 'lse'
                  WHERE o.implementation = t.implementation AND o.output = 'out'),
                '') AS error, t.run_uid
  FROM tests t
  JOIN v_rung r ON r.run_uid = t.run_uid AND r.experiment = ?1 AND r.implementation = t.implementation
 WHERE r.is_general AND r.device = 'cpu' AND r.works IS NOT NULL AND tile IS NOT NULL;
