-- sentence: `syslab run benchmarking_script -a model=… -a context=… -a batch=…` makes the model and a random batch, warms up for 5 steps
--   (`-a warmup=`) and measures {n}; `-a mode=` `forward`, `forward_backward`, `train` (with AdamW). The device is synchronised before
--   and after each measured step and, in further steps, around each phase, by the host's monotonic clock. Measured: {models}; batch {batches}, context {contexts}, {precisions}.
-- experiment: benchmarking_script
-- fills: a
-- columns: n|1|d|right; models|1|s|left; batches|1|s|left; contexts|1|s|left; precisions|1|s|left
WITH v AS MATERIALIZED (
  SELECT params, n, run_uid FROM v_measured WHERE experiment = ?1 AND is_good AND params ->> '$.warmup' = 5
)
SELECT max(n) AS n, (SELECT group_concat(x, ', ') FROM (SELECT DISTINCT params ->> '$.model' AS x FROM v
                                          ORDER BY instr('small medium large xl25 xl26 10B', x), x)) AS models,
       (SELECT group_concat(x, ', ') FROM (SELECT DISTINCT params ->> '$.batch' AS x FROM v ORDER BY 1)) AS batches,
       (SELECT group_concat(x, ', ') FROM (SELECT DISTINCT params ->> '$.context' AS x FROM v ORDER BY 1)) AS contexts,
       (SELECT group_concat(x, ', ') FROM (SELECT DISTINCT params ->> '$.precision' AS x FROM v ORDER BY 1 DESC)) AS precisions,
       max(run_uid) AS run_uid
  FROM v
HAVING count(*) > 0;
