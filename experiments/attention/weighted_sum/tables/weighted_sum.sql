-- title: Weighted sum
-- caption: Median time of one call with its 95 % interval; the rate counts each input read once and each output written
--   once.
-- experiment: weighted_sum
-- columns: pass|1|s|left; rows?|1|d|right; dim|1|d|right; dtype|1|s|left; @timed; gbps as rate|GB/s|.3g|right;
--   vs_naive|×|ci(vs_naive_low, vs_naive_high)|right; vs_from as speed-up from?|1|s|left; @checked
-- note: Backward computes dx and dw; scratch is the partial dw of each row tile.
-- note: Worst error: largest error relative to its bound over all outputs; checked: share of the outputs compared.
SELECT params ->> '$.pass' AS pass, params ->> '$.rows' AS rows,
       params ->> '$.dim' AS dim, params ->> '$.dtype' AS dtype,
       implementation, time_ms, low_ms, high_ms, gbps, vs_naive, vs_naive_low, vs_naive_high, vs_from,
       worst_error, bound, scratch, n, checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY pass DESC, rows, dim, dtype DESC, row_order;
