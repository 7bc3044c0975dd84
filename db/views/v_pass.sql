-- A row a pass of a whole model on one device: of each measured step (`what`: step, forward_backward or forward, the
-- case's mode) and of each of its phases (forward, backward, optimizer; `within`: 1, waited for before and after).
-- Experiments that time such steps say the same of equal cases, so that none needs what another has:
-- benchmarking_script after its usual warm-up, benchmarking_mixed_precision and torch_compile, there PyTorch's own
-- (`is_pytorch`), too. Times in ms: median with its 95 % interval, mean, standard deviation.
-- `point`: what cases of one pass have in common, `alike` that without the precision. `place` is 1 for the row to take
-- where several measured one pass alike: a phase of a longer step last, then the newest.
CREATE VIEW v_pass AS
WITH t AS MATERIALIZED (
  SELECT v.*, v.params ->> '$.mode' AS mode, json_remove(v.params, '$.warmup', '$.mode') AS point,
         json_remove(v.params, '$.warmup', '$.mode', '$.precision') AS alike,
         v.implementation GLOB 'pytorch_*' AS is_pytorch
    FROM v_measured v
   WHERE v.experiment IN ('benchmarking_script', 'benchmarking_mixed_precision', 'torch_compile')
     AND coalesce(v.params ->> '$.warmup', 5) = 5
     AND (v.is_good AND NOT v.is_mine OR v.implementation GLOB 'pytorch_*' AND v.status = 'ok')
),
timed AS (
  SELECT t.*, CASE WHEN m.name <> 'time' THEN m.name WHEN t.mode = 'train' THEN 'step' ELSE t.mode END AS what,
         m.name <> 'time' AS within,
         1e3 * m.value AS ms, 1e3 * m.ci_low AS least_ms, 1e3 * m.ci_high AS most_ms,
         1e3 * coalesce(t.metrics ->> ('$.' || m.name || '_mean'), m.value) AS mean_ms,
         1e3 * (t.metrics ->> ('$.' || m.name || '_stddev')) AS sd_ms
    FROM t
    JOIN metric m ON m.attempt_id = t.attempt_id
                 AND m.name IN ('time', 'forward', 'backward', 'optimizer') AND m.value > 0
)
SELECT *, params ->> '$.model' AS model, params ->> '$.batch' AS batch,
       params ->> '$.context' AS context, params ->> '$.precision' AS "precision",
       metrics ->> '$.parameters' AS parameters,
       row_number() OVER (PARTITION BY point, what, implementation, comparability_key, protocol
                              ORDER BY within AND mode <> 'forward_backward', run_order DESC, attempt_uid DESC) AS place
  FROM timed;
