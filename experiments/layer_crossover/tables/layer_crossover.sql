-- title: Where communication becomes the limit
-- caption: Median times of a rank's products and of its collective, each alone and of the slowest rank at each, with their 95 % intervals;
--   their ratio measured, with the interval that those leave, and by
--   the formula with C and W fitted to all rows of the same layout and number of ranks (least squares of the relative error). Above 1
--   communication is the limit.
-- experiment: layer_crossover
-- columns: layout|1|s|left; elements?|1|s|left; ranks|1|d|right; tokens|1|d|right; d_model as D?|1|d|right; d_ff as F|1|d|right; compute|ms|ci(compute_low, compute_high)|right;
--   communicate|ms|ci(communicate_low, communicate_high)|right; ratio as communicating over computing|×|ci(ratio_low, ratio_high)|right; formula as by the formula|×|.3g|right;
--   time_ms as one behind the other|ms|ci(low_ms, high_ms)|right; c as C|TFLOP/s|.3g|right; w as W|GB/s|.3g|right; n|1|d|right;
--   noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: The formula takes one rate for products of all sizes and one for messages of all sizes: small ones have neither.
WITH one AS MATERIALIZED (
  SELECT v.*, params ->> '$.layout' AS layout, params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff,
         world_size AS ranks, p.value AS compute, p.ci_low AS compute_low, p.ci_high AS compute_high, c.value AS communicate,
         c.ci_low AS communicate_low, c.ci_high AS communicate_high, metrics ->> '$.flops' AS flops, metrics ->> '$.sent_bytes' AS sent,
         iif(coalesce(metrics ->> '$.element_bytes', iif(implementation = 'nccl', 2, 4)) = 2, 'bf16', 'fp32') AS elements
    FROM v_measured v
    LEFT JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'compute' AND p.rank = -1 AND v.is_good
    LEFT JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'communicate' AND c.rank = -1 AND v.is_good
   WHERE experiment = ?1 AND world_size > 1
),
fit AS (
  SELECT layout, ranks, comparability_key, implementation, protocol, sum(flops / compute * flops / compute) / sum(flops / compute) AS c,
         sum(sent / communicate * sent / communicate) / sum(sent / communicate) AS w
    FROM one
   WHERE compute > 0 AND communicate > 0
   GROUP BY layout, ranks, comparability_key, implementation, protocol
)
SELECT o.layout, o.elements, o.ranks, o.tokens, o.d_model, o.d_ff, 1e3 * o.compute AS compute, 1e3 * o.compute_low AS compute_low,
       1e3 * o.compute_high AS compute_high, 1e3 * o.communicate AS communicate, 1e3 * o.communicate_low AS communicate_low,
       1e3 * o.communicate_high AS communicate_high, o.communicate / o.compute AS ratio, o.communicate_low / o.compute_high AS ratio_low,
       o.communicate_high / o.compute_low AS ratio_high, o.sent / f.w / (o.flops / f.c) AS formula, o.time_ms, o.low_ms, o.high_ms, 1e-12 * f.c AS c,
       1e-9 * f.w AS w, o.n, o.noise, o.protocol, o.device, o.status, o.message, o.run_uid
  FROM one o
  LEFT JOIN fit f ON f.layout = o.layout AND f.ranks = o.ranks AND f.comparability_key = o.comparability_key
             AND f.implementation = o.implementation AND f.protocol IS o.protocol
 ORDER BY o.elements DESC, o.layout, o.ranks, iif(o.layout = 'fsdp', o.d_ff, o.tokens), iif(o.layout = 'fsdp', o.tokens, o.d_ff), o.row_order;
