-- figure: lines
-- title: Training loss
-- caption: Loss in nats per token, averaged to about a hundred points a run; the line is the unigram entropy.
-- experiment: train_lm
-- x: step|1|linear
-- y: loss|1|linear
-- series: series
-- panel: model, text, batch, context, lr, seed, device
-- ceiling: unigram|unigram entropy|syslab run train_lm
WITH t AS (
  SELECT v.*, s.id AS series_id, max(1, (v.params ->> '$.steps') / 100) AS width,
         (SELECT value FROM metric k WHERE k.attempt_id = v.attempt_id AND k.name = 'unigram_entropy') AS unigram
    FROM v_measured v
    JOIN series s ON s.attempt_id = v.attempt_id AND s.name = 'loss' AND s.unit = '1'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT (x.idx / width) * width + 0.5 * (width - 1) AS step, avg(x.value) AS loss,
       (params ->> '$.precision') || ', ' || implementation AS series,
       params ->> '$.model' AS model, params ->> '$.text' AS text,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.lr' AS lr, params ->> '$.seed' AS seed, device,
       unigram, 'ok' AS status, max(run_uid) AS run_uid
  FROM t
  JOIN sample x ON x.series_id = t.series_id
 GROUP BY t.attempt_id, x.idx / width
 ORDER BY device, model, CASE params ->> '$.precision' WHEN 'fp32' THEN 1 WHEN 'tf32' THEN 2 ELSE 3 END, series, step;
