-- A row a measured case of layer_crossover on two ranks or more, whatever its end: the time of a rank's products
-- (`compute`) and of its collective (`communicate`), each alone and of the slowest rank, in seconds, NULL where the
-- case is not good; `ratio`, communicating over computing, with the interval that their 95 % intervals leave. `c`
-- (operations a second) and `w` (bytes a second) are fitted to all rows with a ratio of the same layout, number of
-- ranks, implementation, protocol and kind of machine (least squares of the relative error); `formula` is the ratio
-- that they give. `x` is what grows along a curve: tokens where weights are gathered (layout fsdp), hidden numbers
-- where sums are; `other` is the other of the two, and `most` the largest with a ratio.
CREATE VIEW v_layer_crossover AS
WITH timed AS MATERIALIZED (
  SELECT v.*, params ->> '$.layout' AS layout, params ->> '$.tokens' AS tokens,
         params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff,
         world_size AS ranks, p.value AS compute, p.ci_low AS compute_low,
         p.ci_high AS compute_high, c.value AS communicate,
         c.ci_low AS communicate_low, c.ci_high AS communicate_high,
         c.value / p.value AS ratio, c.ci_low / p.ci_high AS ratio_low,
         c.ci_high / p.ci_low AS ratio_high, metrics ->> '$.flops' AS flops, metrics ->> '$.sent_bytes' AS sent,
         iif(coalesce(metrics ->> '$.element_bytes', iif(implementation = 'nccl', 2, 4)) = 2,
             'bf16', 'fp32') AS elements
    FROM v_measured v
    LEFT JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'compute'
                      AND p.rank = -1 AND p.value > 0 AND v.is_good
    LEFT JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'communicate'
                      AND c.rank = -1 AND c.value > 0 AND v.is_good
   WHERE experiment = 'layer_crossover' AND world_size > 1
),
fitted AS (
  SELECT *, iif(layout = 'fsdp', tokens, d_ff) AS x, iif(layout = 'fsdp', d_ff, tokens) AS other,
         sum(flops / compute * flops / compute) FILTER (WHERE ratio IS NOT NULL) OVER same
           / sum(flops / compute) FILTER (WHERE ratio IS NOT NULL) OVER same AS c,
         sum(sent / communicate * sent / communicate) FILTER (WHERE ratio IS NOT NULL) OVER same
           / sum(sent / communicate) FILTER (WHERE ratio IS NOT NULL) OVER same AS w
    FROM timed
  WINDOW same AS (PARTITION BY layout, ranks, comparability_key, implementation, protocol)
)
SELECT *, sent / w / (flops / c) AS formula,
       max(other) FILTER (WHERE ratio IS NOT NULL) OVER (PARTITION BY layout, ranks, comparability_key,
                                                                      implementation, protocol, d_model) AS most
  FROM fitted;
