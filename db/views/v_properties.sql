-- Every check: laws (kind 'law') and comparisons with the reference (kind 'reference'). `ratio` above 1 is wrong.
CREATE VIEW v_properties AS
SELECT k.uid AS check_uid, t.run_uid, t.attempt_uid, t.run_started_at AS started_at, t.experiment, t.params,
       t.status, t.implementation, t.implementation_digest, t.is_mine, t.measured_here, t.world_size,
       iif(k.contract IS NULL, 'reference', 'law') AS kind,
       k.name AS property, k.contract, k.outcome, k.cases_run, k.shrinks_tried, k.shrinks_taken, k.seed, k.reproduce,
       k.counterexample, k.message, k.worst_error, k.tolerance, k.worst_error / k.tolerance AS ratio, k.fraction_checked
  FROM check_result k
  JOIN v_attempt t ON t.attempt_id = k.attempt_id;
