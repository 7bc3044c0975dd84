-- sentence: `flash_tiled` is no kernel: for each block of 96 queries plain loops run over tiles of 128 keys with a running maximum and
--   sum, and it saves Q, K, V, O and the log-sum-exp L of each row, one float, for backward. The hand-out's `test_flash_forward_pass_pytorch` passes.
--   So do, in {cases} random cases each (batch and heads 1 to 3, lengths to 257, d to 256, fp32, bf16 and fp16, causal or not): {laws}. {error}
-- experiment: flash_forward
-- command: syslab check flash_forward
-- fills: a
-- columns: cases|1|d|right; laws|1|s|left; error|1|s|left
WITH tests AS (
  SELECT implementation, group_concat(name, ', ') AS laws, max(cases) AS cases, max(run_uid) AS run_uid
    FROM (SELECT implementation, replace(replace(law, 'attention.', ''), '_', ' ') AS name, sum(cases_run) AS cases, max(run_uid) AS run_uid
            FROM v_coverage
           WHERE experiment = ?1 AND NOT is_mine AND law IN ('attention.equals_oracle', 'attention.lse_equals_oracle', 'attention.causal_prefix', 'attention.rows_sum_to_one', 'attention.large_scores', 'attention.split_keys', 'attention.half_no_worse_than_naive')
           GROUP BY implementation, law
          HAVING min(outcome = 'passed') = 1
           ORDER BY implementation, law)
   GROUP BY implementation
),
-- Of every comparison with fp64, in measurements and in the tests' random cases.
errors AS (
  SELECT implementation, CASE property WHEN 'attention.equals_oracle' THEN 'out' WHEN 'attention.lse_equals_oracle' THEN 'lse'
                              ELSE substr(property, instr(property, ':') + 1) END AS output,
         max(ratio) AS worst, worst_error AS error, tolerance, sum(cases_run) AS times  -- error and tolerance: of the worst ratio
    FROM v_properties
   WHERE experiment IN ('flash_forward', 'flash_benchmarking') AND NOT is_mine AND outcome = 'passed'
     AND property IN ('reference:out', 'reference:lse', 'samples:out', 'samples:lse', 'attention.equals_oracle', 'attention.lse_equals_oracle')
   GROUP BY implementation, output
)
SELECT t.cases, t.laws,
       coalesce((SELECT printf('The worst errors against fp64 are %.2g of the %.2g allowed in O, %.2g of %.2g in L. The bound: n roundings, of at most u (half the dtype''s spacing at 1), may add up to 4√n·u times the value.',
                        o.error, o.tolerance, l.error, l.tolerance)
                   FROM errors o JOIN errors l ON l.implementation = o.implementation AND l.output = 'lse'
                  WHERE o.implementation = t.implementation AND o.output = 'out'),
                'Every error of O and L is within its bound, which follows from the number of roundings.') AS error, t.run_uid
  FROM tests t
 WHERE t.implementation = 'flash_tiled';
