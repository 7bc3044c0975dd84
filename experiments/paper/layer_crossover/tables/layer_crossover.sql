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
SELECT layout, elements, ranks, tokens, d_model, d_ff, 1e3 * compute AS compute, 1e3 * compute_low AS compute_low, 1e3 * compute_high AS compute_high,
       1e3 * communicate AS communicate, 1e3 * communicate_low AS communicate_low, 1e3 * communicate_high AS communicate_high,
       ratio, ratio_low, ratio_high, formula, time_ms, low_ms, high_ms, 1e-12 * c AS c, 1e-9 * w AS w, n, noise, protocol, device, status, message, run_uid
  FROM v_layer_crossover
 ORDER BY elements DESC, layout, ranks, other, x, row_order;
