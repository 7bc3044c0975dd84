-- sentence: Under {precision} ({implementation}): parameters {parameters}, output of the first linear layer {linear},
--   output of the norm {norm}, logits {logits}, loss {loss}, gradients {gradients}. Autocast casts down the inputs of
--   products, weights included.
-- experiment: benchmarking_mixed_precision
-- fills: a
-- columns: precision|1|s|left; implementation|1|code|left; parameters|1|s|left; linear|1|s|left; norm|1|s|left;
--   logits|1|s|left; loss|1|s|left; gradients|1|s|left
WITH seen AS (
  SELECT t.attempt_id, t.implementation, t.params ->> '$.precision' AS "precision",
         j.value ->> '$.tensor' AS tensor, j.value ->> '$.dtype' AS dtype, t.run_uid
    FROM v_newest t, json_each(t.facts, '$.dtypes') j
   WHERE t.experiment = ?1 AND t.task = 'measure' AND t.status = 'ok' AND t.checked AND NOT t.is_mine
     AND t.params ->> '$.precision' IN ('fp16_amp', 'bf16_amp')
),
said AS (
  SELECT "precision", implementation, max(iif(tensor = 'parameters', dtype, NULL)) AS parameters,
         max(iif(tensor = 'layers.*.ffn.gate_up', dtype, NULL)) AS linear,
         max(iif(tensor = 'layers.*.ln1.normalized', dtype, NULL)) AS norm,
         max(iif(tensor = 'logits', dtype, NULL)) AS logits, max(iif(tensor = 'loss', dtype, NULL)) AS loss,
         max(iif(tensor = 'gradients of parameters', dtype, NULL)) AS gradients, run_uid
    FROM seen
   GROUP BY attempt_id
)
SELECT DISTINCT replace("precision", '_amp', ' autocast') AS "precision", implementation,
                parameters, linear, norm, logits, loss, gradients, max(run_uid) AS run_uid
  FROM said
-- The last sentence holds for these dtypes alone.
 WHERE parameters = 'fp32' AND norm = 'fp32' AND loss = 'fp32' AND gradients = 'fp32' AND linear <> 'fp32'
 GROUP BY "precision", implementation
 ORDER BY "precision" = 'bf16_amp', implementation <> 'eager', implementation;
