-- sentence: `syslab run benchmarking_script -a model=… -a context=… -a batch=…` makes the model and a random batch,
--   warms up for 5 steps (`-a warmup=`) and measures {n}; `-a mode=` is `forward`, `forward_backward` or `train` (with
--   AdamW). The host's monotonic clock times each step and, in further steps, each phase, with the device synchronised
--   before and after.
-- experiment: benchmarking_script
-- fills: a
-- columns: n|1|d|right
WITH v AS MATERIALIZED (
  SELECT params, n, run_uid FROM v_measured WHERE experiment = ?1 AND is_good AND params ->> '$.warmup' = 5
)
SELECT max(n) AS n, max(run_uid) AS run_uid
  FROM v
HAVING count(*) > 0;
