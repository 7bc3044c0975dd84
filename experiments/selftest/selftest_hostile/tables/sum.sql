-- sentence: {tried} hostile classes and libraries were handed in with the walls up: {succeeded} got what they wanted or
--   left something.
-- experiment: selftest_hostile
-- columns: tried|1|d|right; succeeded|1|d|right
SELECT total(m.value) FILTER (WHERE m.name = 'tried') AS tried,
       total(m.value) FILTER (WHERE m.name = 'succeeded') AS succeeded, max(v.run_uid) AS run_uid
  FROM v_newest v
  JOIN metric m ON m.attempt_id = v.attempt_id
 WHERE v.experiment = ?1 AND v.task = 'measure' AND v.params ->> '$.planted' = 'none' AND v.params ->> '$.walls' = 'up'
HAVING count(*) > 0;
