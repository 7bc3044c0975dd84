-- The newest attempt that came to an end of its own, whatever end that was: one for each case, implementation, author,
-- origin (here or elsewhere), world size, kind of machine, protocol, task and law. Tables stand on it, so that a case
-- that failed keeps its row.
CREATE VIEW v_newest AS
SELECT t.*
  FROM v_attempt t
  JOIN (SELECT attempt_id,
               row_number() OVER (PARTITION BY case_id, implementation, is_mine, author, measured_here, world_size,
                                               comparability_key, protocol, task, law
                                      ORDER BY run_order DESC, attempt_uid DESC) AS newest
          FROM v_attempt
         WHERE status NOT IN ('running', 'aborted')) pick ON pick.attempt_id = t.attempt_id
 WHERE pick.newest = 1;
