-- Attempts that were falsified, failed or were cut short, whether or not a later one did better; running out of memory
-- is a finding and is not here. `property` is the first comparison or law that was wrong, with its `worst_error` and
-- `bound` (an `error` has none). `passed_later`: the newest later attempt at the same case with the same name, author,
-- origin and ranks that ended ok, on whatever device (`later_device`); `later_error` and `later_bound` are its
-- comparison of the same output, the worst beside its bound.
CREATE VIEW v_not_passed AS
WITH bad AS MATERIALIZED (
  SELECT t.attempt_id, t.attempt_uid, t.run_uid, t.run_order, t.experiment,
         t.case_id, t.implementation, t.is_mine, t.author, t.measured_here,
         t.world_size, t.task, t.law, t.protocol,
         coalesce(t.gpu_name, t.cpu_model, 'unknown') AS device, t.status, t.message,
         (SELECT k.id FROM check_result k
           WHERE k.attempt_id = t.attempt_id AND k.outcome = 'falsified' AND t.status <> 'error'
           ORDER BY k.id LIMIT 1) AS check_id
    FROM v_attempt t
   WHERE t.ending IN ('failed', 'aborted')
),
paired AS (
  SELECT bad.*,
         (SELECT l.attempt_id
            FROM plan_case p
            JOIN attempt a   ON a.run_id = p.run_id AND a.plan_seq = p.seq
            JOIN v_attempt l ON l.attempt_id = a.id
           WHERE p.case_id = bad.case_id AND p.world_size = bad.world_size AND p.task = bad.task AND p.law IS bad.law
             AND l.implementation = bad.implementation AND l.is_mine = bad.is_mine AND l.author IS bad.author
             AND l.measured_here = bad.measured_here AND l.status = 'ok'
             AND (l.run_order, l.attempt_uid) > (bad.run_order, bad.attempt_uid)
           ORDER BY l.run_order DESC, l.attempt_uid DESC LIMIT 1) AS passed_later
    FROM bad
)
SELECT n.attempt_id, n.attempt_uid, n.run_uid, n.experiment, n.case_id, n.implementation,
       n.is_mine, n.author, n.measured_here, n.world_size, n.task, n.law,
       n.protocol, n.device, n.status, n.message, k.name AS property,
       k.worst_error, k.tolerance AS bound, n.passed_later,
       (SELECT coalesce(l.gpu_name, l.cpu_model, 'unknown') FROM v_attempt l
         WHERE l.attempt_id = n.passed_later) AS later_device,
       w.worst_error AS later_error, w.tolerance AS later_bound
  FROM paired n
  LEFT JOIN check_result k ON k.id = n.check_id
  LEFT JOIN check_result w
         ON w.id = (SELECT x.id FROM check_result x
                     WHERE x.attempt_id = n.passed_later
                       AND substr(x.name, instr(x.name, ':') + 1) = substr(k.name, instr(k.name, ':') + 1)
                     ORDER BY x.worst_error / nullif(x.tolerance, 0) DESC, x.id LIMIT 1);
