-- sentence: {layout} on {ranks} ranks ({device}, protocol {protocol}), {fixed}: with C = {c} GFLOP/s and W = {w} GB/s, fitted to its own rows, the
--   formula has computing take as long as communicating at {limit} {axis}. Measured, the two are equal at {crossing}, between {below}
--   (communicating {ratio_below} times computing) and {above} ({ratio_above} times).
-- experiment: layer_crossover
-- columns: layout|1|s|left; ranks|1|d|right; device|1|s|left; protocol|1|s|left; fixed|1|s|left; c|GFLOP/s|.3g|right; w|GB/s|.3g|right;
--   limit|1|.3g|right; axis|1|s|left; crossing|1|.3g|right; below|1|d|right; ratio_below|×|.3g|right; above|1|d|right; ratio_above|×|.3g|right
WITH one AS MATERIALIZED (
  SELECT params ->> '$.layout' AS layout, world_size AS ranks, device, protocol, comparability_key, run_uid, params ->> '$.d_model' AS d_model,
         iif(params ->> '$.layout' = 'fsdp', params ->> '$.tokens', params ->> '$.d_ff') AS x,
         iif(params ->> '$.layout' = 'fsdp', params ->> '$.d_ff', params ->> '$.tokens') AS other,
         metrics ->> '$.compute' AS compute, metrics ->> '$.communicate' AS communicate,
         metrics ->> '$.flops' AS flops, metrics ->> '$.sent_bytes' AS sent
    FROM v_measured
   WHERE experiment = ?1 AND world_size > 1 AND is_good AND metrics ->> '$.compute' > 0 AND metrics ->> '$.communicate' > 0
),
placed AS (
  SELECT *, communicate / compute AS ratio, lead(x) OVER along AS next, lead(communicate / compute) OVER along AS ratio_next,
         max(other) OVER (PARTITION BY layout, ranks, comparability_key, protocol, d_model) AS most,
         sum(flops / compute * flops / compute) OVER same / sum(flops / compute) OVER same AS c,
         sum(sent / communicate * sent / communicate) OVER same / sum(sent / communicate) OVER same AS w
    FROM one
  WINDOW same AS (PARTITION BY layout, ranks, comparability_key, protocol),
         along AS (PARTITION BY layout, ranks, comparability_key, protocol, d_model, other ORDER BY x)
)
SELECT iif(layout = 'fsdp', 'Full sharding', 'Tensor parallelism') AS layout, ranks, device, protocol,
       printf(iif(layout = 'fsdp', 'D = %d, F = %d', 'D = %d, %d tokens'), d_model, other) AS fixed, 1e-9 * c AS c, 1e-9 * w AS w,
       4.0 * (ranks - 1) * c / w / iif(layout = 'fsdp', 2, 3) AS "limit", iif(layout = 'fsdp', 'tokens', 'hidden numbers') AS axis,
       x * exp(ln(1.0 * next / x) * ln(ratio) / ln(ratio / ratio_next)) AS crossing, x AS below, ratio AS ratio_below, next AS above,
       ratio_next AS ratio_above, run_uid
  FROM placed
 WHERE other = most AND ratio > 1 AND ratio_next <= 1
 ORDER BY device, protocol, layout, ranks, x;
