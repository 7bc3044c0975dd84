-- title: Not passed
-- caption: Attempts that were wrong, failed or were cut short, also where a later attempt at the case ended ok.
-- about error, bound, later_error, later_bound: `error` and `bound` are of the first wrong comparison, `later error`
--   and `later bound` of the same output in the newest later attempt.
-- experiment: *
-- command: syslab run {experiment}
-- columns: implementation|1|code|left; case|1|s|left; ranks?|1|d|right; law?|1|s|left; status|1|status|left;
--   property?|1|s|left; error?|1|s|right; bound?|1|s|right; later as later ok|1|s|left;
--   later_error as later error?|1|s|right; later_bound as later bound?|1|s|right; protocol?|1|s|left; device?|1|s|left;
--   run|1|uid|left
SELECT n.implementation || iif(n.measured_here, '', ' (self-reported)') AS implementation,
       coalesce((SELECT group_concat(x.axis || '=' || x.value, ' ') FROM v_param x
                  WHERE x.case_id = n.case_id), '–') AS "case",
       n.world_size AS ranks, coalesce(n.law, '–') AS law, n.status, n.message, coalesce(n.property, '–') AS property,
       iif(n.worst_error IS NULL, '–', printf('%.2e', n.worst_error)) AS error,
       iif(n.bound IS NULL, '–', printf('%.2e', n.bound)) AS bound,
       iif(n.passed_later IS NULL, 'no', iif(n.later_device = n.device, 'yes', 'yes, on ' || n.later_device)) AS later,
       iif(n.later_error IS NULL, '–', printf('%.2e', n.later_error)) AS later_error,
       iif(n.later_bound IS NULL, '–', printf('%.2e', n.later_bound)) AS later_bound,
       n.protocol, n.device, n.run_uid AS run, n.run_uid
  FROM v_not_passed n
 WHERE n.experiment = ?1
 ORDER BY n.implementation, n.law, n.case_id, n.world_size, n.run_uid, n.attempt_uid;
