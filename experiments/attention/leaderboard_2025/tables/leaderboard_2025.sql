-- title: Kernel leaderboard 2025
-- caption: Median time of forward and backward together (or of one) at the leaderboard's size with its 95 % interval,
--   and the mean, which the leaderboard counts.
-- experiment: leaderboard_2025
-- columns: heads|1|d|right; seq|1|d|right; head_dim|1|d|right; dtype|1|s|left; causal?|1|flag|left; pass|1|s|left;
--   @timed; mean|ms|.4g|right; tflops as rate|TFLOP/s|.3g|right;
--   vs_naive as vs naive|×|ci(vs_naive_low, vs_naive_high)|right; vs_from as speed-up from?|1|s|left; @checked
-- note: The rate counts 14·B·H·pairs·D operations for forward and backward, recomputation not counted. The
--   leaderboard's own time has about 100 MB of gradients to add up in it.
SELECT params ->> '$.heads' AS heads, params ->> '$.seq' AS seq, params ->> '$.head_dim' AS head_dim,
       params ->> '$.dtype' AS dtype, params ->> '$.causal' AS causal,
       params ->> '$.pass' AS pass, implementation, time_ms, low_ms, high_ms,
       1e3 * (metrics ->> '$.time_mean') AS mean, tflops,
       vs_naive, vs_naive_low, vs_naive_high, vs_from, worst_error, bound, scratch,
       n, checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY heads, seq, head_dim, dtype, pass <> 'both', pass <> 'forward', row_order;
