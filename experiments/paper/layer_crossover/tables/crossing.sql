-- sentence: {layout} on {ranks} ranks ({device}, {elements}, protocol {protocol}), {fixed}: with C = {c} TFLOP/s and
--   W = {w} GB/s fitted to these rows the formula predicts that communication equals compute at {limit} {axis}.
--   Measured, communication / compute is {ratio_below} at {below} and {ratio_above} at {above}; interpolated on a
--   logarithmic scale they are equal at {crossing}: {verdict}.
-- experiment: layer_crossover
-- columns: layout|1|s|left; ranks|1|d|right; device|1|s|left; elements|1|s|left; protocol|1|s|left; fixed|1|s|left;
--   c|TFLOP/s|.3g|right; w|GB/s|.3g|right; limit|1|.3g|right; axis|1|s|left;
--   crossing|1|ci(crossing_low, crossing_high)|right; below|1|d|right; ratio_below|×|ci(below_low, below_high)|right;
--   above|1|d|right; ratio_above|×|ci(above_low, above_high)|right; verdict|1|s|left
WITH placed AS (
  SELECT *, lead(x) OVER along AS next, lead(ratio) OVER along AS ratio_next, lead(ratio_low) OVER along AS low_next,
         lead(ratio_high) OVER along AS high_next
    FROM v_layer_crossover
   WHERE ratio IS NOT NULL
  WINDOW along AS (PARTITION BY layout, ranks, comparability_key, implementation, protocol, d_model, other ORDER BY x)
),
-- By the formula the ratio falls as 1/x: it is 1 at x times itself.
-- Where one of the ratios may be 1 itself, the crossing may lie beyond the sizes that it was to lie between.
crossed AS (
  SELECT *, ratio_low > 1 AND high_next < 1 AS is_between
    FROM placed
   WHERE other = most AND ratio > 1 AND ratio_next <= 1
)
SELECT iif(layout = 'fsdp', 'Full sharding', 'Tensor parallelism') AS layout, ranks, device, elements, protocol,
       printf(iif(layout = 'fsdp', 'D = %d, F = %d', 'D = %d, %d tokens'), d_model, other) AS fixed,
       1e-12 * c AS c, 1e-9 * w AS w,
       x * formula AS "limit", iif(layout = 'fsdp', 'tokens', 'hidden numbers') AS axis,
       x * exp(ln(1.0 * next / x) * ln(ratio) / ln(ratio / ratio_next)) AS crossing,
       iif(is_between, x * exp(ln(1.0 * next / x) * ln(ratio_low) / ln(ratio_low / low_next)), NULL) AS crossing_low,
       iif(is_between,
           x * exp(ln(1.0 * next / x) * ln(ratio_high) / ln(ratio_high / high_next)), NULL) AS crossing_high,
       CASE WHEN is_between THEN 'the interval covers the timing noise, not the interpolation'
            WHEN ratio_low IS NULL OR low_next IS NULL THEN 'too few samples for an interval'
            ELSE 'noise does not exclude a crossing outside these two sizes' END AS verdict,
       x AS below, ratio AS ratio_below, ratio_low AS below_low, ratio_high AS below_high,
       next AS above, ratio_next AS ratio_above, low_next AS above_low, high_next AS above_high, run_uid
  FROM crossed
 ORDER BY device, protocol, layout, ranks, x;
