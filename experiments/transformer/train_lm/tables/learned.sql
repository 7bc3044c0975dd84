-- sentence: {implementation} in {precision} ({device}; peak learning rate {lr}, seed {seed}) trains {parameters}
--   parameters from a loss of {first} to {loss} nats per token in {steps} steps of {batch} × {context} tokens;
--   validation loss on {unseen} is {validation} ({chosen}), versus {unigram} for the unigram entropy.
-- experiment: train_lm
-- columns: implementation|1|code|left; precision|1|code|left; device|1|s|left; lr|1|.2g|right; seed|1|d|right;
--   parameters|1|d|right; first|1|.3f|right; loss|1|.3f|right; steps|1|d|right; batch|1|d|right; context|1|d|right;
--   unseen|1|s|left; validation|1|.3f|right; chosen|1|s|left; unigram|1|.3f|right
WITH t AS (
  SELECT v.*, params ->> '$.precision' AS precision, metrics ->> '$.validation_loss' AS validation
    FROM v_measured v
   WHERE experiment = ?1 AND is_good AND metrics ->> '$.first_step' = 0
),
-- The run that knows unseen text best, in fp32 where there is one; of texts in other tokens there is no better or
-- worse.
placed AS (
  SELECT *, row_number() OVER (PARTITION BY comparability_key, implementation, params ->> '$.text', params ->> '$.vocab'
                                   ORDER BY precision <> 'fp32', validation, attempt_uid DESC) AS place,
         count(*) OVER (PARTITION BY comparability_key, implementation, params ->> '$.text',
                                     params ->> '$.vocab', precision) AS runs
    FROM t
)
SELECT implementation, precision, device, params ->> '$.lr' AS lr,
       params ->> '$.seed' AS seed, metrics ->> '$.parameters' AS parameters,
       metrics ->> '$.first_loss' AS first, metrics ->> '$.loss' AS loss,
       params ->> '$.steps' AS steps, params ->> '$.batch' AS batch,
       params ->> '$.context' AS context,
       iif(params ->> '$.text' = 'pages', 'text', params ->> '$.text') || ' held out' AS unseen, validation,
       iif(runs > 1, printf('lowest of %d runs in this precision', runs), 'one run in this precision') AS chosen,
       metrics ->> '$.unigram_entropy' AS unigram, run_uid
  FROM placed
 WHERE place = 1
 ORDER BY device, implementation, params ->> '$.text', params ->> '$.vocab';
