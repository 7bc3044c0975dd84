-- title: Runs
-- caption: Planned cases by the end of their last attempt; "not asked": skipped or unsupported, "missing": unfinished
--   (`syslab resume RUN`).
-- experiment: *
-- command: syslab run all --preset smoke
-- columns: run|1|uid|left; verb|1|s|left; started|UTC|s|left; label?|1|s|left; protocol|1|s|left; cpu?|1|s|left;
--   gpu?|1|s|left; planned|1|d|right; ok|1|d|right; not_asked|1|d|right; oom as OOM|1|d|right; failed|1|d|right;
--   missing|1|d|right
SELECT run_uid AS run, verb || iif(measured_here, '', ' (self-reported)') AS verb,
       substr(replace(started_at, 'T', ' '), 1, 16) AS started,
       coalesce(label, '–') AS label, protocol, cpu_model AS cpu,
       coalesce(gpu_name, 'none') AS gpu, planned, ok, not_asked, oom, failed, missing, run_uid
  FROM v_run
 ORDER BY run_order DESC, run_uid DESC;
