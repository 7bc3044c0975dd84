-- A row a measured case: its newest attempt, whatever its end (v_newest), with what tables of kernels show. Times in
-- ms, of the slowest rank: where the ranks kept step, of the slowest at each step, which the row of rank -1 says (with
-- no value where they did not, and then none of theirs stands in). What failed has no time and no rate, here
-- and in `metrics`; what ended with an `error` has no number at all. What came by merge or import has a time only if it
-- was checked. `worst_error` and `bound` are of the check where the error is largest beside its bound, over all
-- outputs and all verified calls; `checked_percent` is the share of the outputs judged; `noise` lists what the measurer
-- thought of the machine. `vs_naive`, `vs_peer`: how many times as fast as the implementation whose role is `naive`,
-- or as the fastest peer (named in `peer`), at the same case, world size, protocol and kind of machine,
-- where both are ok and checked; `vs_naive_low`, `vs_naive_high`, `vs_peer_low`, `vs_peer_high` take both 95 %
-- intervals at their worst, and are none of a row beside itself. `vs_from`: whether both sides of these ratios come
-- from one run.
-- `implementation` names who handed one in under another name than its own, and what came by merge or import: "me
-- (ada)", "naive (self-reported)", so that whatever groups by it keeps hand-ins apart. Ratios stay within one origin.
-- `row_order` sorts rows of one case: device, protocol, reference, naive, the others by name; the roles say which is
-- which.
-- `backend`: what carries tensors between ranks that train, as axis `backend` has it; `auto`, and no such axis, is
-- `shm` or, on GPUs, `nccl`.
-- `metrics` is an object of all metrics by name. Of several ranks' the one that stands for all: that of rank -1 where
-- there is one (what the slowest rank at each step makes it, or null), else the largest; where the largest is not what
-- is meant, ask `metric`.
CREATE VIEW v_measured AS
WITH t AS MATERIALIZED (
  SELECT n.*, coalesce(n.gpu_name, n.cpu_model, 'unknown') AS device,
         1e3 * m.value AS time_ms, 1e3 * m.ci_low AS low_ms, 1e3 * m.ci_high AS high_ms, m.n
    FROM v_newest n
    LEFT JOIN metric m ON m.attempt_id = n.attempt_id AND m.name = 'time'
                      AND n.ending IS NOT 'failed' AND (n.checked OR n.measured_here)
                      AND m.rank = (SELECT x.rank FROM metric x WHERE x.attempt_id = n.attempt_id AND x.name = 'time'
                                     ORDER BY x.rank <> -1, x.value DESC, x.rank LIMIT 1)
   WHERE n.task = 'measure'
),
base AS MATERIALIZED (
  SELECT attempt_id, run_uid, case_id, world_size, comparability_key, protocol,
         implementation, is_mine, measured_here, role, time_ms, low_ms, high_ms,
         row_number() OVER (PARTITION BY case_id, world_size, comparability_key, protocol, measured_here, role IS 'peer'
                                ORDER BY time_ms, implementation) AS place
    FROM t
   WHERE status = 'ok' AND checked AND time_ms > 0 AND role IN ('naive', 'peer')
)
SELECT t.attempt_id, t.attempt_uid, t.run_uid, t.run_started_at,
       t.run_order, t.experiment, t.case_id, t.case_uid, t.params,
       t.implementation || CASE
         WHEN t.is_mine AND t.author <> t.implementation
           THEN ' (' || t.author || iif(t.measured_here, '', ', self-reported') || ')'
         WHEN NOT t.measured_here THEN ' (self-reported)'
         ELSE '' END AS implementation,
       t.is_mine, t.role, t.measured_here, t.world_size, t.comparability_key,
       t.protocol, t.device, t.gpu_name, t.status, t.ending,
       t.message, t.facts, t.checked, t.status = 'ok' AND t.checked AND t.facts ->> '$.suspect' IS NULL AS is_good,
       t.time_ms, t.low_ms, t.high_ms, t.n,
       (SELECT min(value) FROM metric m
         WHERE m.attempt_id = t.attempt_id AND m.name = 'tflops' AND t.ending IS NOT 'failed') AS tflops,
       (SELECT min(value) FROM metric m
         WHERE m.attempt_id = t.attempt_id AND m.name = 'gbps' AND t.ending IS NOT 'failed') AS gbps,
       (SELECT max(value) FROM metric m
         WHERE m.attempt_id = t.attempt_id AND m.name = 'peak_scratch_bytes' AND t.status <> 'error') AS scratch,
       iif(t.status = 'ok' AND t.checked, naive.time_ms / t.time_ms, NULL)                       AS vs_naive,
       iif(t.status = 'ok' AND t.checked AND naive.attempt_id <> t.attempt_id,
           naive.low_ms / t.high_ms, NULL) AS vs_naive_low,
       iif(t.status = 'ok' AND t.checked AND naive.attempt_id <> t.attempt_id,
           naive.high_ms / t.low_ms, NULL) AS vs_naive_high,
       peer.implementation                                                                       AS peer,
       iif(t.status = 'ok' AND t.checked, peer.time_ms / t.time_ms, NULL)                        AS vs_peer,
       iif(t.status = 'ok' AND t.checked AND peer.attempt_id <> t.attempt_id,
           peer.low_ms / t.high_ms, NULL) AS vs_peer_low,
       iif(t.status = 'ok' AND t.checked AND peer.attempt_id <> t.attempt_id,
           peer.high_ms / t.low_ms, NULL) AS vs_peer_high,
       iif(coalesce(naive.run_uid, t.run_uid) = t.run_uid AND coalesce(peer.run_uid, t.run_uid) = t.run_uid,
           'one run', 'different runs') AS vs_from,
       worst.worst_error, worst.tolerance                                                        AS bound,
       100 * (SELECT min(k.fraction_checked) FROM check_result k
               WHERE k.attempt_id = t.attempt_id AND k.contract IS NULL AND t.status <> 'error'
                 AND (k.name LIKE 'reference:%' OR k.name LIKE 'sample%:%'))                     AS checked_percent,
       iif(t.status <> 'ok', NULL,
           iif(t.facts ->> '$.suspect' IS NULL, '', 'suspect, ')
           || coalesce((SELECT group_concat(j.value, ', ') FROM json_each(t.facts, '$.noise') j), 'none')) AS noise,
       printf('%s|%s|%d|%d|%s', t.device, t.protocol, t.is_mine,
              CASE WHEN t.role IN ('reference', 'gpu_reference') THEN 0 WHEN t.role = 'naive' THEN 1 ELSE 2 END,
              t.implementation) AS row_order,
       iif(coalesce(t.params ->> '$.backend', 'auto') = 'auto',
           iif(t.gpu_name IS NULL, 'shm', 'nccl'), t.params ->> '$.backend') AS backend,
       (SELECT json_group_object(name, value)
          FROM (SELECT m.name, iif(min(m.rank) < 0, max(m.value) FILTER (WHERE m.rank < 0), max(m.value)) AS value
                  FROM metric m
                 WHERE m.attempt_id = t.attempt_id AND t.status <> 'error'
                   AND (t.ending IS NOT 'failed' OR m.unit NOT IN ('s', '1/s', 'GB/s', 'TFLOP/s'))
                 GROUP BY m.name)) AS metrics
  FROM t
  LEFT JOIN base naive ON naive.case_id = t.case_id AND naive.world_size = t.world_size
                      AND naive.comparability_key = t.comparability_key AND naive.protocol IS t.protocol
                      AND naive.measured_here = t.measured_here
                      AND naive.role = 'naive'
  LEFT JOIN base peer  ON peer.case_id = t.case_id AND peer.world_size = t.world_size
                      AND peer.comparability_key = t.comparability_key AND peer.protocol IS t.protocol
                      AND peer.measured_here = t.measured_here
                      AND peer.role IS 'peer' AND peer.place = 1
  LEFT JOIN check_result worst
         ON worst.id = (SELECT k.id FROM check_result k
                         WHERE k.attempt_id = t.attempt_id AND k.contract IS NULL AND t.status <> 'error'
                           AND (k.name LIKE 'reference:%' OR k.name LIKE 'sample%:%')
                         ORDER BY k.worst_error / nullif(k.tolerance, 0) DESC, k.worst_error DESC, k.id LIMIT 1);
