-- title: Training a small language model
-- caption: Loss in nats per token: first step, mean of the last tenth of the steps, and held-out text.
-- about vs_fp32: `vs fp32`: validation loss relative to the same run in fp32.
-- experiment: train_lm
-- columns: text?|1|s|left; model?|1|s|left; parameters|1|d|right; batch?|1|d|right; context?|1|d|right;
--   steps|1|d|right; lr?|1|.2g|right; seed?|1|d|right; precision|1|s|left; implementation|1|code|left;
--   first|1|.4f|right; loss|1|.4f|right; validation|1|.4f|right; bits|bit|.3f|right; vs_fp32 as vs fp32|%|.2f|right;
--   unigram|1|.3f|right; step|ms|.3g|right; tokens|1/s|.4g|right; skipped?|1|d|right; from_step?|1|d|right;
--   device?|1|s|left; status|1|status|left
-- note: `unigram`: entropy of token frequencies alone.
WITH t AS MATERIALIZED (
  SELECT v.*, json_remove(v.params, '$.precision', '$.checkpoint', '$.checkpoint_every') AS point,
         v.params ->> '$.precision' AS precision,
         (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found
    FROM v_measured v
   WHERE experiment = ?1
),
-- fp32 by the same implementation, or by another where it has none (fp32 on a GPU is the same arithmetic).
plain AS (
  SELECT point, implementation, comparability_key, avg(found ->> '$.validation_loss') AS validation
    FROM t
   WHERE is_good AND precision = 'fp32'
   GROUP BY point, implementation, comparability_key
)
SELECT params ->> '$.text' AS text, params ->> '$.model' AS model, found ->> '$.parameters' AS parameters,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.steps' AS steps, params ->> '$.lr' AS lr,
       params ->> '$.seed' AS seed, precision, implementation,
       found ->> '$.first_loss' AS first, found ->> '$.loss' AS loss,
       found ->> '$.validation_loss' AS validation, found ->> '$.bits_per_token' AS bits,
       100 * ((found ->> '$.validation_loss') / plain.validation - 1) AS vs_fp32,
       found ->> '$.unigram_entropy' AS unigram,
       time_ms AS step, found ->> '$.tokens_per_second' AS tokens, found ->> '$.skipped_steps' AS skipped,
       found ->> '$.first_step' AS from_step, device, status, message, run_uid
  FROM t
  LEFT JOIN plain USING (point, implementation, comparability_key)
 ORDER BY text, parameters, steps, lr, seed, device, implementation,
          CASE precision WHEN 'fp64' THEN 0 WHEN 'fp32' THEN 1 WHEN 'tf32' THEN 2 WHEN 'bf16_amp' THEN 3
                         WHEN 'fp16_amp' THEN 4 ELSE 5 END;
