-- sentence: Backward first computes D = rowsum(O ∘ dO); then, tile by tile, P = exp(scale·Q·Kᵀ − L) anew from the saved
--   L, dV = Pᵀ·dO, dP = dO·Vᵀ, dS = P ∘ (dP − D), dQ = scale·dS·K and dK = scale·dSᵀ·Q. {tests}.{error}
-- experiment: flash_backward
-- command: syslab check flash_backward
-- fills: *
-- columns: tests|1|s|left; error|1|s|left
WITH passed AS MATERIALIZED (
  SELECT implementation, CASE substr(law, instr(law, '.') + 1)
           WHEN 'gradients_equal_oracle' THEN 'match fp64' WHEN 'finite_differences' THEN 'match finite differences'
           WHEN 'half_gradients_no_worse_than_naive'
             THEN 'err at most twice as much as unfused attention in half precision'
           WHEN 'bitwise_repeatable' THEN 'are bitwise repeatable' END AS name,
         sum(cases_run) AS cases, max(run_uid) AS run_uid
    FROM v_coverage
   WHERE experiment = ?1 AND NOT is_mine AND measured_here
     AND law IN ('attention.gradients_equal_oracle', 'attention.finite_differences',
                 'attention.half_gradients_no_worse_than_naive', 'attention.bitwise_repeatable')
   GROUP BY implementation, law
  HAVING min(outcome = 'passed') = 1
   ORDER BY implementation, law
),
tests AS (
  SELECT p.implementation, max(p.run_uid) AS run_uid, max(r.device = 'cuda') AS is_kernel
    FROM passed p
    LEFT JOIN v_rung r ON r.run_uid = p.run_uid AND r.experiment = ?1 AND r.implementation = p.implementation
   GROUP BY p.implementation
),
errors AS (
  SELECT implementation, params ->> '$.dtype' AS dtype, substr(property, instr(property, ':') + 1) AS output,
         max(ratio) AS worst, worst_error AS error, tolerance, sum(cases_run) AS times
    FROM v_properties
   WHERE kind = 'reference' AND experiment IN ('flash_backward', 'flash_benchmarking')
     AND NOT is_mine AND measured_here AND status <> 'error'
     AND property IN ('reference:dq', 'reference:dk', 'reference:dv', 'samples:dq', 'samples:dk', 'samples:dv')
     AND outcome = 'passed'
   GROUP BY implementation, dtype, output
)
SELECT printf('Tested on %d random inputs each: ', (SELECT min(cases) FROM passed)) ||
       -- A law is named once, with those that pass it.
       (SELECT group_concat(iif(who = 'all', 'all gradients ', 'those of ' || who || ' ') || names, '; ')
          FROM (SELECT group_concat(name, ' and ') AS names, who
                  FROM (SELECT name, iif(count(*) > 1 AND count(*) = (SELECT count(*) FROM tests),
                                         'all', group_concat('`' || implementation || '`', ' and ')) AS who
                          FROM passed
                         GROUP BY name
                         ORDER BY name DESC)
                 GROUP BY who
                 ORDER BY who <> 'all', min(name) DESC)) AS tests,
       coalesce((SELECT ' Errors nearest their bound, against fp64 (bound): ' || group_concat(text, '; ') || '.'
                   FROM (SELECT printf('`%s` (%s) ', implementation, dtype)
                                  || group_concat(printf('d%s %.2g (%.2g)',
                                                         upper(substr(output, 2)), error, tolerance), ', ') AS text
                           FROM (SELECT * FROM errors ORDER BY output = 'dv', output = 'dk')
                          -- Of the GPU's kernels; of the others where no kernel ran.
                          WHERE implementation IN (SELECT implementation FROM tests
                                                    WHERE is_kernel IS (SELECT max(is_kernel) FROM tests))
                          GROUP BY implementation, dtype
                         HAVING count(*) = 3
                          ORDER BY implementation DESC, dtype)
                 HAVING count(*) > 0),
                '') AS error,
       (SELECT max(run_uid) FROM tests) AS run_uid
 WHERE EXISTS (SELECT 1 FROM tests);
