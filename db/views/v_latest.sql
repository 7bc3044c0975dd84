-- v_result of the newest ok attempt for each case, implementation, author, world size, kind of machine and protocol;
-- what was measured here and what came from elsewhere each have their newest.
CREATE VIEW v_latest AS
SELECT v.*
  FROM (SELECT attempt_id,
               row_number() OVER (PARTITION BY case_id, implementation, is_mine, author, measured_here, world_size,
                                               comparability_key, protocol
                                      ORDER BY run_order DESC, attempt_uid DESC) AS newest
          FROM v_attempt
         WHERE status = 'ok' AND task = 'measure') pick
  JOIN v_result v ON v.attempt_id = pick.attempt_id
 WHERE pick.newest = 1;
