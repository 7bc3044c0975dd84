-- title: Laws
-- caption: Random search for counterexamples. Worst: largest error relative to its bound (above 1 is wrong; "exact": no
--   error allowed). `syslab replay ID` shows a counterexample again.
-- experiment: *
-- command: syslab check {experiment}
-- columns: law|1|code|left; implementation|1|code|left; contract|1|s|left; outcome|1|outcome|left; cases|1|d|right;
--   worst|1|.2g|right; id|1|uid|left; why?|1|s|left
SELECT c.law, c.implementation || iif(c.measured_here, '', ' (self-reported)') AS implementation,
       coalesce(c.contract, 'not told') AS contract, c.outcome, c.cases_run AS cases,
       CASE WHEN c.outcome = 'error' OR k.worst_error IS NULL OR k.tolerance IS NULL THEN 'no bound'
            WHEN k.tolerance > 0 THEN k.worst_error / k.tolerance
            WHEN k.worst_error = 0 THEN 'exact' ELSE 'beyond 0' END AS worst,
       coalesce(c.check_uid, 'none') AS id,
       iif(c.outcome = 'passed', '–', coalesce(c.message, 'no reason given')) AS why,
       c.run_uid
  FROM v_coverage c
  LEFT JOIN check_result k ON k.uid = c.check_uid
 WHERE c.experiment = ?1
 ORDER BY c.law, c.implementation, c.contract;
