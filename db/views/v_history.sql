-- A metric of a case through the runs on comparable machines: each value beside the one before it.
CREATE VIEW v_history AS
SELECT experiment, version, case_uid, params, case_text, implementation, is_mine, author,
       measured_here, world_size, comparability_key, gpu_name, cpu_model, protocol,
       metric, unit, rank, run_started_at AS started_at, run_order, run_uid, attempt_uid,
       git_sha, git_dirty, implementation_digest, checked, value, ci_low, ci_high, n,
       lag(value) OVER earlier         AS previous_value,
       value / lag(value) OVER earlier AS ratio_to_previous
  FROM v_result
 WHERE status = 'ok' AND task = 'measure' AND value IS NOT NULL
WINDOW earlier AS (PARTITION BY case_uid, implementation, is_mine, author, measured_here,
                                world_size, comparability_key, protocol, metric, unit, rank
                       ORDER BY run_order, attempt_uid);
