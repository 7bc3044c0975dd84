-- sentence: At the ceilings measured on {gpu} ({tflops} TFLOP/s in {dtype}, {gbps} GB/s) a step of {model} with batch
--   {batch}, context {context} in {precision} takes at least {products} s of matrix products and {optimizer} s of AdamW
--   on one GPU, if it fitted.
-- experiment: leaderboard_2026
-- command: syslab run ceiling_copy ceiling_gemm leaderboard_2026
-- columns: gpu|1|s|left; tflops|1|.4g|right; dtype|1|s|left; gbps|1|.4g|right; model|1|s|left; batch|1|d|right;
--   context|1|d|right; precision|1|code|left; products|1|.3g|right; optimizer|1|.2g|right
WITH t AS (
  SELECT v.params, v.run_uid, f.value AS flops, p.value AS parameters, v.params ->> '$.precision' AS precision,
         iif(v.params ->> '$.precision' IN ('bf16_amp', 'bf16_fused'), 'bf16', v.params ->> '$.precision') AS dtype
    FROM v_newest v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'step_flops'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.task = 'measure'
     AND v.implementation = 'predicted' AND v.world_size = 1 AND v.status = 'ok'
)
SELECT c.gpu_name AS gpu, c.value AS tflops, t.dtype, b.value AS gbps,
       t.params ->> '$.model' AS model, t.params ->> '$.batch' AS batch,
       t.params ->> '$.context' AS context, precision, t.flops / c.value / 1e12 AS products,
       -- 28 bytes a parameter, and 2 for the copy in half precision
       t.parameters * iif(t.dtype = 'bf16', 30, 28) / b.value / 1e9 AS optimizer, max(t.run_uid, c.run_uid) AS run_uid
  FROM t
  JOIN v_ceiling c ON c.metric = 'tflops' AND c.dtype = t.dtype AND c.gpu_name IS NOT NULL
  JOIN v_ceiling b ON b.metric = 'gbps' AND b.comparability_key = c.comparability_key
 ORDER BY gpu, batch DESC, precision;
