-- Attempts that did not end well, with why. `is_last`: no later attempt at the same planned case has ended.
CREATE VIEW v_failures AS
SELECT t.run_uid, t.attempt_uid, t.attempt_no, t.started_at, t.ended_at,
       t.experiment, t.params, t.case_text, t.implementation,
       t.is_mine, t.world_size, t.task, t.law, t.plan_seq, t.status, t.message,
       (SELECT k.name || ': ' || coalesce(k.message, k.outcome) FROM check_result k
         WHERE k.attempt_id = t.attempt_id AND k.outcome IN ('falsified', 'error')
         ORDER BY k.id LIMIT 1) AS first_failed_check,
       NOT EXISTS (SELECT 1 FROM attempt x
                    WHERE x.run_id = t.run_id AND x.plan_seq = t.plan_seq AND x.uid > t.attempt_uid
                      AND EXISTS (SELECT 1 FROM attempt_event e
                                   WHERE e.attempt_id = x.id AND e.status NOT IN ('started', 'heartbeat'))) AS is_last
  FROM v_attempt t
 WHERE t.ending IN ('oom', 'failed', 'aborted');
