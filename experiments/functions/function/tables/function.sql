-- title: Functions against their references
-- caption: Median time of one call with its 95 % interval, on arguments that no call has seen.
-- experiment: function
-- columns: problem|1|code|left; case_name as case|1|s|left; @timed; gbps as rate|GB/s|.3g|right;
--   vs_peer as vs reference|×|ci(vs_peer_low, vs_peer_high)|right; @checked
-- note: Checked: the part of the outputs' elements that was judged; the others differ by more than rounding explains,
--   and jumps, sums that cancel or large neighbours widen their bounds.
-- note: Worst error: largest error relative to its bound over all outputs. The reference is timed in the dtype of its
--   arguments.
SELECT params ->> '$.problem' AS problem, params ->> '$.case' AS case_name,
       implementation, time_ms, low_ms, high_ms, gbps,
       vs_peer, vs_peer_low, vs_peer_high, worst_error, bound, scratch, n,
       checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY problem, case_name, row_order;
