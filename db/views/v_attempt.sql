-- One row an attempt, with what was asked and how it ended. `status` is 'running' while there is no end; a real end
-- outweighs an `aborted` that was written for a writer thought dead. `ending` groups the statuses, here and nowhere
-- else: `ok`; `not_asked` (unsupported, skipped); `oom`, which is a finding; `aborted`, cut short from outside;
-- `failed`; NULL while there is no end. `checked`: something was compared and nothing was wrong. `protocol` names the
-- inputs where they were not the usual ones ("kernel, zeros inputs"): such numbers never meet the others; nor do times
-- under another version of the protocols than today's ("kernel, version 1"; only a run with a protocol of ours has
-- `verify_share`). `author`: who handed the implementation in, NULL for ours. `measured_here`: 0 when the run came by
-- merge or import from somebody who is not vouched for. What ran on the CPU of a machine that has a GPU is that CPU's:
-- it has no gpu_name and a comparability_key of its own, and never meets what ran on the GPU. `case_text` is `params`
-- in words ("context=32 model=tiny").
-- `run_order` sorts attempts by the start of their run; a run that is dated in the future comes before all others, so
-- that a wrong clock makes nothing the newest. Most other views stand on this one.
CREATE VIEW v_attempt AS
SELECT a.id                                  AS attempt_id,
       a.uid                                 AS attempt_uid,
       a.run_id,
       r.uid                                 AS run_uid,
       r.verb,
       r.label,
       r.protocol ->> '$.name' || coalesce(', ' || nullif(r.protocol ->> '$.data', 'normal') || ' inputs', '')
         || iif(p.task = 'measure' AND r.protocol ->> '$.verify_share' IS NOT NULL
                AND coalesce(r.protocol ->> '$.version', 1) <> 2,
                ', version ' || coalesce(r.protocol ->> '$.version', 1), '') AS protocol,
       en.comparability_key ||
         iif(en.gpu_name IS NOT NULL AND f.facts ->> '$.device' = 'cpu', ' cpu', '') AS comparability_key,
       en.host,
       en.cpu_model,
       iif(f.facts ->> '$.device' = 'cpu', NULL, en.gpu_name) AS gpu_name,
       b.version                             AS tool_version,
       b.git_sha,
       b.git_dirty,
       c.experiment,
       c.version,
       p.case_id,
       c.uid                                 AS case_uid,
       c.params,
       (SELECT group_concat(x.axis || '=' || x.value, ' ') FROM v_param x WHERE x.case_id = p.case_id) AS case_text,
       i.name                                AS implementation,
       i.digest                              AS implementation_digest,
       i.language,
       i.is_mine,
       iif(i.is_mine, coalesce(sub.author, i.name), NULL) AS author,
       coalesce(ar.trusted, 1)               AS measured_here,
       p.role,
       p.world_size,
       p.task,
       p.law,
       a.plan_seq,
       (SELECT count(*) FROM attempt x
         WHERE x.run_id = a.run_id AND x.plan_seq = a.plan_seq AND x.uid <= a.uid) AS attempt_no,
       p.seed,
       coalesce(e.status, 'running')         AS status,
       CASE WHEN e.status IN ('ok', 'oom', 'aborted') THEN e.status
            WHEN e.status IN ('unsupported', 'skipped') THEN 'not_asked'
            WHEN e.status IS NOT NULL THEN 'failed' END AS ending,
       e.detail ->> '$.message'              AS message,
       r.started_at                          AS run_started_at,
       iif(r.started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ' ', '') || r.started_at AS run_order,
       (SELECT min(s.at) FROM attempt_event s
         WHERE s.attempt_id = a.id AND s.status = 'started') AS started_at,
       e.at                                  AS ended_at,
       EXISTS (SELECT 1 FROM check_result k WHERE k.attempt_id = a.id AND k.outcome = 'passed')
         AND NOT EXISTS (SELECT 1 FROM check_result k
                          WHERE k.attempt_id = a.id AND k.outcome IN ('falsified', 'error')) AS checked,
       f.facts
  FROM attempt a
  JOIN run r            ON r.id = a.run_id
  JOIN v_environment en ON en.environment_id = r.environment_id
  JOIN v_build b        ON b.build_id = r.build_id
  JOIN plan_case p      ON p.run_id = a.run_id AND p.seq = a.plan_seq
  JOIN case_def c       ON c.id = p.case_id
  JOIN implementation i ON i.id = p.implementation_id
  LEFT JOIN run_submission rs ON rs.run_id = a.run_id
  LEFT JOIN submission sub    ON sub.id = rs.submission_id
  LEFT JOIN arrival ar        ON ar.run_uid = r.uid
  LEFT JOIN attempt_facts f ON f.attempt_id = a.id
  LEFT JOIN attempt_event e ON e.attempt_id = a.id AND e.status NOT IN ('started', 'heartbeat')
        AND NOT EXISTS (SELECT 1 FROM attempt_event x
                         WHERE x.attempt_id = e.attempt_id AND x.status NOT IN ('started', 'heartbeat')
                           AND (x.status <> 'aborted', x.at, x.status) > (e.status <> 'aborted', e.at, e.status));
