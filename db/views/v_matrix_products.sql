-- Where the share of matrix products in a training step (fp32, nsys_profile) grows with the model: a row a context, an
-- implementation and a part of the step ('step', or 'both': forward and backward) of which two models or more were
-- profiled. `models` and their `shares`, in %, by the time of a step.
CREATE VIEW v_matrix_products AS
WITH profiled AS (
  SELECT p.part, k.params ->> '$.model' AS model, k.params ->> '$.context' AS context, k.implementation, k.device,
         sum(k.ms) FILTER (WHERE k.phase = '') AS total,
         100 * sum(k.ms) FILTER (WHERE iif(p.part = 'step', k.phase = '',
                                           k.phase IN ('forward', 'backward')) AND k.kind = 'matrix products')
           / sum(k.ms) FILTER (WHERE iif(p.part = 'step', k.phase = '', k.phase IN ('forward', 'backward'))) AS share
    FROM v_kernel k
    JOIN (SELECT 'step' AS part UNION ALL SELECT 'both') p
   WHERE k.experiment = 'nsys_profile' AND k.is_good
     AND k.params ->> '$.precision' = 'fp32' AND k.params ->> '$.mode' = 'train'
   GROUP BY p.part, k.attempt_id
),
-- One profile a model.
of_models AS (
  SELECT part, context, implementation, row_number() OVER w AS n,
         share <= lag(share) OVER w AS falls, group_concat(model, ', ') OVER w AS models,
         group_concat(printf('%#.3g', share), ', ') OVER w AS shares
    FROM (SELECT *, row_number() OVER (PARTITION BY part, context, implementation, model ORDER BY device) AS nth
            FROM profiled)
   WHERE nth = 1
  WINDOW w AS (PARTITION BY part, context, implementation ORDER BY total)
)
-- Of the row of max(n), the last.
SELECT part, context, implementation, models, shares
  FROM (SELECT *, max(n) AS last FROM of_models GROUP BY part, context, implementation HAVING total(falls) = 0)
 WHERE last > 1;
