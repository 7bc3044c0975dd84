-- title: Comparisons of rates
-- caption: A and B, which print rates, measured in alternation (or one of them stored). Change: rate of B over A,
--   less one, with its 95 % interval: above 0, B does more per second. Verdicts after Benjamini–Hochberg over the
--   sweep.
-- experiment: *
-- command: syslab compare --command A=… --command B=… --reads '{} GB/s'
-- empty: No comparisons of rates.
-- columns: case|1|s|left; a as A|1|code|left; b as B|1|code|left; rate_a as rate of A|unit|.4g|right;
--   rate_b as rate of B|unit|.4g|right; unit|1|s|left; change|%|ci(change_low, change_high)|right; verdict|1|s|left;
--   q?|1|.2g|right; delta as δ?|%|.3g|right; launches|1|d|right; mode?|1|s|left; why?|1|s|left; run|1|uid|left
SELECT c.case_text AS "case",
       c.label_a || iif(c.measured_here, '', ' (self-reported)') AS a,
       c.label_b || iif(c.measured_here, '', ' (self-reported)') AS b,
       1 / c.value_a AS rate_a, 1 / c.value_b AS rate_b, c.rate_unit AS unit,
       100 * (1 / (1 + c.change) - 1) AS change, 100 * (1 / (1 + c.change_high) - 1) AS change_low,
       100 * (1 / (1 + c.change_low) - 1) AS change_high,
       c.verdict, coalesce(c.q_value, 'none') AS q, 100 * c.delta AS delta, c.launches, c.mode,
       coalesce(c.reason, 'clear') AS why, c.run_uid AS run, c.run_uid
  FROM v_comparison c
 WHERE c.experiment = ?1 AND c.is_last AND c.verb <> 'doctor' AND c.rate_unit IS NOT NULL
 ORDER BY c.at, c.comparison_uid;
