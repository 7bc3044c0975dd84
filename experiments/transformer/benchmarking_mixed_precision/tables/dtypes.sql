-- title: Data types under autocast
-- caption: Dtype of each tensor in a training step of a two-layer model; `layers.*` is any layer.
-- about toy: `toy`: the corresponding tensor of the hand-out's toy model (linear, ReLU, layer norm, linear).
-- experiment: benchmarking_mixed_precision
-- fills: a
-- columns: implementation|1|code|left; tensor|1|code|left; toy|1|s|left; fp32|1|s|left; tf32?|1|s|left;
--   fp16_amp|1|s|left; bf16_amp|1|s|left; bf16_fused|1|s|left; fp64?|1|s|left; device?|1|s|left
-- note: The model here is the transformer: RMSNorm for layer norm, W1 and W3 side by side for the first linear layer,
--   cross-entropy for the loss, which autocast keeps in fp32.
-- note: `eager` follows autocast: a norm returns fp32 and is cast before the next product. `fused` and `graph` compute
--   the norm in fp32 and round once.
WITH seen AS (
  SELECT t.implementation, t.params ->> '$.precision' AS precision, j.key AS place, j.value ->> '$.tensor' AS tensor,
         j.value ->> '$.dtype' AS dtype, coalesce(t.gpu_name, t.cpu_model, 'unknown') AS device,
         t.comparability_key, t.run_uid,
         dense_rank() OVER (PARTITION BY t.implementation, t.params ->> '$.precision', t.comparability_key
                                ORDER BY t.run_order DESC, t.attempt_uid DESC) AS newest
    FROM v_newest t, json_each(t.facts, '$.dtypes') j
   WHERE t.experiment = ?1 AND t.task = 'measure' AND t.status = 'ok' AND t.checked AND NOT t.is_mine
)
SELECT implementation, tensor,
       CASE tensor WHEN 'parameters' THEN 'parameters'
                   WHEN 'layers.*.ffn.gate_up' THEN 'output of the first linear layer'
                   WHEN 'layers.*.ffn.gated' THEN 'output of ReLU'
                   WHEN 'layers.*.ln1.normalized' THEN 'output of layer norm'
                   WHEN 'logits' THEN 'logits'
                   WHEN 'loss' THEN 'loss'
                   WHEN 'gradients of parameters' THEN 'gradients' ELSE '–' END AS toy,
       max(iif(precision = 'fp32', dtype, NULL)) AS fp32, max(iif(precision = 'tf32', dtype, NULL)) AS tf32,
       max(iif(precision = 'fp16_amp', dtype, NULL)) AS fp16_amp,
       max(iif(precision = 'bf16_amp', dtype, NULL)) AS bf16_amp,
       max(iif(precision = 'bf16_fused', dtype, NULL)) AS bf16_fused,
       max(iif(precision = 'fp64', dtype, NULL)) AS fp64, device, max(run_uid) AS run_uid
  FROM seen
 WHERE newest = 1
 GROUP BY implementation, comparability_key, tensor
 ORDER BY device, CASE implementation WHEN 'eager' THEN 1 WHEN 'fused' THEN 2 WHEN 'graph' THEN 3 ELSE 0 END,
          implementation, min(place);
