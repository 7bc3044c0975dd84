-- sentence: {implementation} in {precision} ({device}) brings {parameters} parameters from a loss of {first} to {loss} nats a token in {steps}
--   steps of {tokens} tokens; on text that it has not seen it is at {validation}, where frequencies of single tokens alone would be at {unigram}.
-- experiment: train_lm
-- columns: implementation|1|code|left; precision|1|code|left; device|1|s|left; parameters|1|d|right; first|1|.3f|right;
--   loss|1|.3f|right; steps|1|d|right; tokens|1|d|right; validation|1|.3f|right; unigram|1|.3f|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found
    FROM v_measured v
   WHERE experiment = ?1 AND is_good
)
SELECT implementation, params ->> '$.precision' AS precision, device, found ->> '$.parameters' AS parameters,
       found ->> '$.first_loss' AS first, found ->> '$.loss' AS loss, params ->> '$.steps' AS steps,
       (params ->> '$.batch') * (params ->> '$.context') AS tokens, found ->> '$.validation_loss' AS validation,
       found ->> '$.unigram_entropy' AS unigram, run_uid
  FROM (SELECT *, row_number() OVER (PARTITION BY comparability_key, implementation
                                         ORDER BY params ->> '$.precision' <> 'fp32', params ->> '$.steps' DESC, attempt_uid DESC) AS place
          FROM t WHERE found ->> '$.first_step' = 0)
 WHERE place = 1
 ORDER BY device, implementation;
