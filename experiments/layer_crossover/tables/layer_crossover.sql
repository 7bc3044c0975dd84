-- title: Where communication becomes the limit
-- caption: Median times of a rank's products and of its collective, each alone and of the slowest rank at each; their ratio measured, and by
--   the formula with C and W fitted to all rows of the same layout and number of ranks (least squares of the relative error). Above 1
--   communication is the limit.
-- experiment: layer_crossover
-- columns: layout|1|s|left; ranks|1|d|right; tokens|1|d|right; d_model as D?|1|d|right; d_ff as F|1|d|right; compute|ms|.3g|right;
--   communicate|ms|.3g|right; ratio as communicating over computing|×|.3g|right; formula as by the formula|×|.3g|right;
--   time_ms as one behind the other|ms|ci(low_ms, high_ms)|right; c as C|GFLOP/s|.3g|right; w as W|GB/s|.3g|right; n|1|d|right;
--   noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: The formula takes one rate for products of all sizes and one for messages of all sizes: small ones have neither.
WITH one AS MATERIALIZED (
  SELECT *, params ->> '$.layout' AS layout, params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff,
         world_size AS ranks, iif(is_good, metrics ->> '$.compute', NULL) AS compute, iif(is_good, metrics ->> '$.communicate', NULL) AS communicate,
         metrics ->> '$.flops' AS flops, metrics ->> '$.sent_bytes' AS sent
    FROM v_measured
   WHERE experiment = ?1 AND world_size > 1
),
fit AS (
  SELECT layout, ranks, comparability_key, protocol, sum(flops / compute * flops / compute) / sum(flops / compute) AS c,
         sum(sent / communicate * sent / communicate) / sum(sent / communicate) AS w
    FROM one
   WHERE compute > 0 AND communicate > 0
   GROUP BY layout, ranks, comparability_key, protocol
)
SELECT o.layout, o.ranks, o.tokens, o.d_model, o.d_ff, 1e3 * o.compute AS compute, 1e3 * o.communicate AS communicate,
       o.communicate / o.compute AS ratio, o.sent / f.w / (o.flops / f.c) AS formula, o.time_ms, o.low_ms, o.high_ms, 1e-9 * f.c AS c,
       1e-9 * f.w AS w, o.n, o.noise, o.protocol, o.device, o.status, o.message, o.run_uid
  FROM one o
  LEFT JOIN fit f ON f.layout = o.layout AND f.ranks = o.ranks AND f.comparability_key = o.comparability_key AND f.protocol IS o.protocol
 ORDER BY o.layout, o.ranks, iif(o.layout = 'fsdp', o.d_ff, o.tokens), iif(o.layout = 'fsdp', o.tokens, o.d_ff), o.row_order;
