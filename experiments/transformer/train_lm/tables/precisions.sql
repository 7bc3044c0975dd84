-- sentence: After {steps} steps {implementation} in {precision} ({device}) has a validation loss of {half} versus
--   {full} in fp32, {change} %: {verdict}.
-- experiment: train_lm
-- command: syslab run train_lm --preset paper
-- columns: steps|1|d|right; implementation|1|code|left; precision|1|code|left; device|1|s|left; half|1|.4f|right;
--   full|1|.4f|right; change|%|s|right; verdict|1|s|left
WITH t AS (
  SELECT v.*, json_remove(v.params, '$.precision', '$.checkpoint', '$.checkpoint_every') AS point, k.value AS loss
    FROM v_measured v
    JOIN metric k ON k.attempt_id = v.attempt_id AND k.name = 'validation_loss'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.steps' >= 1000
)
SELECT h.params ->> '$.steps' AS steps, h.implementation,
       h.params ->> '$.precision' AS precision, h.device, h.loss AS half,
       f.loss AS full, printf('%+.2f', 100 * (h.loss / f.loss - 1)) AS change,
       CASE WHEN h.loss / f.loss - 1 > 0.01 THEN 'worse by more than the 1 % allowed'
            WHEN h.loss / f.loss - 1 < -0.01 THEN 'lower by more than 1 %, which meets the bound'
            ELSE 'within the 1 % allowed' END AS verdict, max(h.run_uid, f.run_uid) AS run_uid
  FROM t h
  JOIN t f ON f.point = h.point AND f.implementation = h.implementation AND f.comparability_key = h.comparability_key
          AND f.params ->> '$.precision' = 'fp32'
 WHERE h.params ->> '$.precision' <> 'fp32'
 ORDER BY h.device, h.implementation, precision;
