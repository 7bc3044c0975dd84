-- Runs and where they stand: planned cases by how their last attempt that has ended did (`ending` of v_attempt);
-- `missing`: none has, or the last was cut short. `run_order` and `measured_here`: as in v_attempt.
CREATE VIEW v_run AS
SELECT r.id AS run_id, r.uid AS run_uid, r.verb, r.started_at,
       iif(r.started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ' ', '') || r.started_at AS run_order, r.label,
       r.protocol ->> '$.name'
         || coalesce(', ' || nullif(r.protocol ->> '$.data', 'normal') || ' inputs', '') AS protocol,
       r.root_seed, r.argv, en.comparability_key, en.host, en.cpu_model,
       en.gpu_name, b.version AS tool_version, b.git_sha, b.git_dirty,
       NOT EXISTS (SELECT 1 FROM arrival ar WHERE ar.run_uid = r.uid AND NOT ar.trusted) AS measured_here,
       count(p.seq)                                                            AS planned,
       count(*) FILTER (WHERE l.ending = 'ok')                                 AS ok,
       count(*) FILTER (WHERE l.ending = 'not_asked')                          AS not_asked,
       count(*) FILTER (WHERE l.ending = 'oom')                                AS oom,
       count(*) FILTER (WHERE l.ending = 'failed')                             AS failed,
       count(*) FILTER (WHERE p.seq IS NOT NULL AND coalesce(l.ending, 'aborted') = 'aborted') AS missing
  FROM run r
  JOIN v_environment en ON en.environment_id = r.environment_id
  JOIN v_build b        ON b.build_id = r.build_id
  LEFT JOIN plan_case p ON p.run_id = r.id
  LEFT JOIN (SELECT run_id, plan_seq, ending, max(attempt_uid) FROM v_attempt
              WHERE ending IS NOT NULL GROUP BY run_id, plan_seq) l ON l.run_id = r.id AND l.plan_seq = p.seq
 GROUP BY r.id;
