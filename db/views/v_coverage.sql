-- Implementations × laws: the newest outcome of every law that was ever planned, 'not_run' where none was reached. What
-- was measured here and what came from elsewhere each have their newest.
CREATE VIEW v_coverage AS
SELECT experiment, implementation, is_mine, author, measured_here,
       law, contract, outcome, cases_run, message, check_uid, run_uid, started_at
  FROM (SELECT c.experiment, i.name AS implementation, i.is_mine, p.law,
               iif(i.is_mine, coalesce(sub.author, i.name), NULL) AS author,
               coalesce(k.contract, c.params ->> '$.contract') AS contract,
               coalesce(k.outcome, 'not_run')                  AS outcome,
               coalesce(k.cases_run, 0)                        AS cases_run,
               k.message,
               k.uid                                           AS check_uid,
               r.uid                                           AS run_uid,
               r.started_at,
               coalesce(ar.trusted, 1)                         AS measured_here,
               -- By what was found last; a law that was planned again but not reached hides no older finding.
               row_number() OVER (PARTITION BY c.experiment, i.name, i.is_mine,
                                               iif(i.is_mine, coalesce(sub.author, i.name), NULL), p.law,
                                               coalesce(ar.trusted, 1), coalesce(k.contract, c.params ->> '$.contract')
                                      ORDER BY k.uid IS NOT NULL AND k.outcome <> 'not_run' DESC,
                                               r.started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
                                               r.started_at DESC, k.uid DESC) AS newest
          FROM plan_case p
          JOIN run r            ON r.id = p.run_id
          JOIN case_def c       ON c.id = p.case_id
          LEFT JOIN arrival ar  ON ar.run_uid = r.uid
          JOIN implementation i ON i.id = p.implementation_id
          LEFT JOIN run_submission rs ON rs.run_id = p.run_id
          LEFT JOIN submission sub ON sub.id = rs.submission_id
          LEFT JOIN attempt a      ON a.run_id = p.run_id AND a.plan_seq = p.seq
          LEFT JOIN check_result k ON k.attempt_id = a.id AND k.name = p.law
         WHERE p.task = 'law')
 WHERE newest = 1;
