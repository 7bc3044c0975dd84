-- title: Weighted sum over the last dimension
-- caption: Median time of one call with its 95 % interval; the rate counts each input read once and each output written once.
-- experiment: weighted_sum
-- columns: pass|1|s|left; rows?|1|d|right; dim|1|d|right; dtype|1|s|left; @timed; gbps as rate|GB/s|.3g|right;
--   vs_naive|×|ci(vs_naive_low, vs_naive_high)|right; @checked
-- note: Backward makes dx and dw; scratch is the partial dw of every row tile.
-- note: Worst error is where the error is largest beside its bound, over all outputs and all verified calls; checked is
--   the share of the outputs that was compared.
SELECT params ->> '$.pass' AS pass, params ->> '$.rows' AS rows, params ->> '$.dim' AS dim, params ->> '$.dtype' AS dtype,
       implementation, time_ms, low_ms, high_ms, gbps, vs_naive, vs_naive_low, vs_naive_high, worst_error, bound, scratch, n, checked_percent, noise, protocol,
       device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY pass DESC, rows, dim, dtype DESC, row_order;
