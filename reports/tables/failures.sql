-- title: Failed attempts
-- caption: Newest attempt at each case that was wrong, ran out of memory or did not finish.
-- experiment: *
-- empty: None.
-- columns: experiment|1|code|left; implementation|1|code|left; case|1|s|left; ranks?|1|d|right; law?|1|s|left;
--   status|1|status|left; check|1|s|left; protocol?|1|s|left; run|1|uid|left
SELECT t.experiment, t.implementation,
       t.case_text AS "case",
       t.world_size AS ranks, coalesce(t.law, 'none') AS law, t.status, t.message,
       coalesce((SELECT k.name || ': ' || coalesce(k.message, k.outcome) FROM check_result k
                  WHERE k.attempt_id = t.attempt_id AND k.outcome IN ('falsified', 'error') ORDER BY k.id LIMIT 1),
                'none failed') AS "check",
       t.protocol, t.run_uid AS run, t.run_uid
  FROM v_newest t
 WHERE t.ending IN ('oom', 'failed')
 ORDER BY t.experiment, t.case_uid, t.implementation, t.world_size, t.law;
