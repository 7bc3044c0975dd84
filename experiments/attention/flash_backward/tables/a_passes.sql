-- sentence: Backward first computes D = rowsum(O ∘ dO); then, tile by tile, P = exp(scale·Q·Kᵀ − L) anew from the saved L, dV = Pᵀ·dO, dP = dO·Vᵀ,
--   dS = P ∘ (dP − D), dQ = scale·dS·K and dK = scale·dSᵀ·Q. {tests}. {error}
-- experiment: flash_backward
-- command: syslab check flash_backward
-- fills: *
-- columns: tests|1|s|left; error|1|s|left
WITH passed AS MATERIALIZED (
  SELECT implementation, replace(replace(law, 'attention.', ''), '_', ' ') AS name, sum(cases_run) AS cases, max(run_uid) AS run_uid
    FROM v_coverage
   WHERE experiment = ?1 AND NOT is_mine AND law IN ('attention.gradients_equal_oracle', 'attention.finite_differences', 'attention.half_gradients_no_worse_than_naive', 'attention.bitwise_repeatable', 'attention.repeats')
   GROUP BY implementation, law
  HAVING min(outcome = 'passed') = 1
   ORDER BY implementation, law
),
tests AS (SELECT implementation, max(run_uid) AS run_uid FROM passed GROUP BY implementation),
errors AS (
  SELECT implementation, substr(property, instr(property, ':') + 1) AS output, max(ratio) AS worst, worst_error AS error, tolerance, sum(cases_run) AS times
    FROM v_properties
   WHERE kind = 'reference' AND experiment IN ('flash_backward', 'flash_benchmarking') AND NOT is_mine
     AND property IN ('reference:dq', 'reference:dk', 'reference:dv', 'samples:dq', 'samples:dk', 'samples:dv') AND outcome = 'passed'
   GROUP BY implementation, output
)
SELECT 'Passed over random shapes, dtypes and masks: ' ||
       -- A law is named once, with those that pass it.
       (SELECT group_concat(name || ' (' || who || ')', ', ') || printf('; %d cases each', max(cases))
          FROM (SELECT name, iif(count(*) > 1 AND count(*) = (SELECT count(*) FROM tests), 'all', group_concat('`' || implementation || '`', ', ')) AS who,
                       max(cases) AS cases
                  FROM passed
                 GROUP BY name
                 ORDER BY count(*) DESC, name)) AS tests,
       coalesce((SELECT 'Errors against fp64 nearest to their bounds (n roundings of u may reach 4√n·u): ' || group_concat(text, '; ') || '.'
                   FROM (SELECT printf('`%s` dQ %.2g of %.2g, dK %.2g of %.2g, dV %.2g of %.2g', q.implementation, q.error, q.tolerance, k.error, k.tolerance, v.error, v.tolerance) AS text, q.times
                           FROM errors q
                           JOIN errors k ON k.implementation = q.implementation AND k.output = 'dk'
                           JOIN errors v ON v.implementation = q.implementation AND v.output = 'dv'
                          WHERE q.output = 'dq' AND q.implementation IN (SELECT implementation FROM tests)
                            -- Of the kernels; of the plain loops where nothing else ran.
                            AND (q.implementation <> 'flash_tiled' OR NOT EXISTS (SELECT 1 FROM tests WHERE implementation <> 'flash_tiled')))),
                'Every error is within its bound, which follows from the number of roundings.') AS error,
       (SELECT max(run_uid) FROM tests) AS run_uid
 WHERE EXISTS (SELECT 1 FROM tests);
