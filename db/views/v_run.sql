-- Runs and where they stand: planned cases by the end of their last finished attempt; `missing` never finished one.
CREATE VIEW v_run AS
SELECT r.id AS run_id, r.uid AS run_uid, r.verb, r.started_at, r.label,
       r.protocol ->> '$.name' || coalesce(', ' || nullif(r.protocol ->> '$.data', 'normal') || ' inputs', '') AS protocol,
       r.root_seed, r.argv, en.comparability_key, en.host, en.cpu_model, en.gpu_name, b.version AS tool_version, b.git_sha,
       b.git_dirty,
       count(p.seq)                                                            AS planned,
       count(*) FILTER (WHERE l.status = 'ok')                                 AS ok,
       count(*) FILTER (WHERE l.status IN ('unsupported', 'skipped'))          AS not_asked,
       count(*) FILTER (WHERE l.status NOT IN ('ok', 'unsupported', 'skipped')) AS failed,
       count(*) FILTER (WHERE p.seq IS NOT NULL AND l.status IS NULL)          AS missing
  FROM run r
  JOIN environment en ON en.id = r.environment_id
  JOIN build b        ON b.id = r.build_id
  LEFT JOIN plan_case p ON p.run_id = r.id
  LEFT JOIN (SELECT run_id, plan_seq, status, max(attempt_uid) FROM v_attempt
              WHERE status <> 'running' GROUP BY run_id, plan_seq) l ON l.run_id = r.id AND l.plan_seq = p.seq
 GROUP BY r.id;
