-- title: Measured communication limit of a layer
-- caption: Median times of a rank's matrix products and of its collective, each alone, slowest rank, with 95 %
--   intervals; their ratio measured and by the formula, with C and W fitted to all rows of the same layout and rank
--   count (least squares of the relative error). Above 1 the layer is communication-bound.
-- experiment: layer_crossover
-- columns: layout|1|s|left; elements?|1|s|left; ranks|1|d|right; tokens|1|d|right; d_model as D?|1|d|right;
--   d_ff as F|1|d|right; compute|ms|ci(compute_low, compute_high)|right;
--   communicate|ms|ci(communicate_low, communicate_high)|right;
--   ratio as communication / compute|×|ci(ratio_low, ratio_high)|right; formula as by the formula|×|.3g|right;
--   time_ms as in sequence|ms|ci(low_ms, high_ms)|right; c as C|TFLOP/s|.3g|right; w as W|GB/s|.3g|right; n|1|d|right;
--   noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: The formula assumes one compute rate and one bandwidth for all sizes; small sizes reach neither.
SELECT layout, elements, ranks, tokens, d_model, d_ff, 1e3 * compute AS compute,
       1e3 * compute_low AS compute_low, 1e3 * compute_high AS compute_high,
       1e3 * communicate AS communicate, 1e3 * communicate_low AS communicate_low,
       1e3 * communicate_high AS communicate_high,
       ratio, ratio_low, ratio_high, formula, time_ms, low_ms, high_ms, 1e-12 * c AS c,
       1e-9 * w AS w, n, noise, protocol, device, status, message, run_uid
  FROM v_layer_crossover
 ORDER BY elements DESC, layout, ranks, other, x, row_order;
