-- title: Files that would rather be believed than be right
-- caption: The newest attempt of each case, failed ones among them. With the walls up none may succeed; what does
--   without them is what they are for.
-- experiment: selftest_hostile
-- columns: kind|1|s|left; walls|1|s|left; tried|1|d|right; succeeded|1|d|right; planted?|1|s|left; status|1|s|left
SELECT v.params ->> '$.kind' AS kind, v.params ->> '$.walls' AS walls,
       max(m.value) FILTER (WHERE m.name = 'tried') AS tried,
       max(m.value) FILTER (WHERE m.name = 'succeeded') AS succeeded,
       v.params ->> '$.planted' AS planted, v.status, v.run_uid
  FROM v_newest v
  JOIN metric m ON m.attempt_id = v.attempt_id
 WHERE v.experiment = ?1 AND v.task = 'measure'
 GROUP BY v.attempt_id
 ORDER BY planted <> 'none', walls DESC, kind, v.params;
