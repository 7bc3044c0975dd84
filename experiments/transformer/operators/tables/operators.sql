-- title: Operators of the model beside a copy
-- caption: Median time of one call with its 95 % interval; the rate counts each input and output once. `share` is the time of the fastest
--   copy of as many bytes (`copied by`), same machine, same protocol, over the operator's.
-- experiment: operators
-- columns: operator|1|code|left; pass?|1|s|left; rows|1|d|right; dim|1|d|right; dtype?|1|s|left; @timed; gbps as rate|GB/s|.3g|right;
--   share as share of a copy|%|.3g|right; peer as copied by|1|code|left; @checked
-- note: `eager_cuda` moves more bytes than are counted: its operations go through memory one by one. What fits a cache may pass 100 %.
SELECT params ->> '$.operator' AS operator, params ->> '$.pass' AS pass, params ->> '$.rows' AS rows, params ->> '$.dim' AS dim,
       params ->> '$.dtype' AS dtype, implementation, time_ms, low_ms, high_ms, gbps, 100 * vs_peer AS share, peer, worst_error, bound,
       scratch, n, checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND role IS NOT 'peer' AND status <> 'skipped'
 ORDER BY operator, pass <> 'forward', pass, dtype <> 'fp32', dtype, rows, dim, row_order;
