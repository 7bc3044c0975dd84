-- sentence: The fused kernels, {kernels}: the grid has a block for each tile of 32 to 128 queries of each head of each batch row; it loops once over tiles
--   of 32 to 128 keys, keeps maximum, sum and O in fp32 registers, casts P to V's dtype before the second product and O when it is written, and
--   writes L. Passed, {cases} random cases each: {laws}. {error}
-- experiment: flash_forward
-- command: syslab check flash_forward
-- fills: b
-- columns: kernels|1|s|left; cases|1|d|right; laws|1|s|left; error|1|s|left
WITH kernels AS (
  SELECT column1 AS implementation, column2 AS what
    FROM (VALUES ('flash_mma', '`flash_mma` (bf16, fp16)'), ('flash_fp32', '`flash_fp32` (fp32 by three products of halves)'))
),
-- With the tests that all kernels passed.
passed AS (
  SELECT law, implementation, sum(cases_run) AS cases, max(run_uid) AS run_uid
    FROM v_coverage
   WHERE experiment = ?1 AND NOT is_mine AND implementation IN (SELECT implementation FROM kernels)
     AND law IN ('attention.equals_oracle', 'attention.lse_equals_oracle', 'attention.causal_prefix', 'attention.rows_sum_to_one', 'attention.large_scores', 'attention.split_keys', 'attention.half_no_worse_than_naive')
   GROUP BY law, implementation
  HAVING min(outcome = 'passed') = 1
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
SELECT (SELECT group_concat(what, ' and ') FROM kernels k WHERE k.implementation IN (SELECT implementation FROM passed)) AS kernels,
       (SELECT min(cases) FROM passed) AS cases,
       (SELECT group_concat(name, ', ')
          FROM (SELECT replace(replace(law, 'attention.', ''), '_', ' ') AS name FROM passed
                 GROUP BY law HAVING count(*) = (SELECT count(DISTINCT implementation) FROM passed) ORDER BY law)) AS laws,
       coalesce((SELECT 'Of the errors of O and L against fp64 the nearest to its bound, as in (a), is ' ||
                        group_concat(printf('%.2g of %.2g in `%s` (%s)', error, tolerance, implementation, iif(output = 'out', 'O', 'L')), ', ') || '.'
                   FROM (SELECT *, row_number() OVER (PARTITION BY implementation ORDER BY worst DESC, output) AS place, count(*) OVER (PARTITION BY implementation) AS outputs
                           FROM errors
                          WHERE implementation IN (SELECT implementation FROM passed))
                  WHERE place = 1 AND outputs = 2
                 HAVING count(*) > 0),
                'Every error of O and L is within its bound, which follows from the number of roundings.') AS error,
       (SELECT max(run_uid) FROM passed) AS run_uid
 WHERE EXISTS (SELECT 1 FROM passed);
