-- title: Comparisons
-- caption: A and B measured in alternation (or one of them stored). Change: time of B over A, less one, with its 95 %
--   interval; verdicts after Benjamini–Hochberg over the sweep.
-- experiment: *
-- command: syslab compare {experiment} A:impl=… B:impl=…
-- empty: No comparisons.
-- columns: case|1|s|left; a as A|1|code|left; b as B|1|code|left; time_a as time of A|ms|.4g|right;
--   time_b as time of B|ms|.4g|right; change|%|ci(change_low, change_high)|right; verdict|1|s|left; q?|1|.2g|right;
--   delta as δ?|%|.3g|right; launches|1|d|right; mode?|1|s|left; why?|1|s|left; run|1|uid|left
SELECT c.case_text AS "case",
       c.label_a || iif(c.measured_here, '', ' (self-reported)') AS a,
       c.label_b || iif(c.measured_here, '', ' (self-reported)') AS b,
       1e3 * c.value_a AS time_a, 1e3 * c.value_b AS time_b,
       100 * c.change AS change, 100 * c.change_low AS change_low, 100 * c.change_high AS change_high,
       c.verdict, coalesce(c.q_value, 'none') AS q, 100 * c.delta AS delta, c.launches, c.mode,
       coalesce(c.reason, 'clear') AS why, c.run_uid AS run, c.run_uid
  FROM v_comparison c
 WHERE c.experiment = ?1 AND c.is_last AND c.verb <> 'doctor' AND c.rate_unit IS NULL
 ORDER BY c.at, c.comparison_uid;
