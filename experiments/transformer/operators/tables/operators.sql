-- title: Memory-bound operators
-- caption: Median time with its 95 % interval; the rate counts each input and output once.
-- about share, peer: `share`: time of the fastest copy of as many bytes (`copied by`) over the operator's.
-- experiment: operators
-- columns: operator|1|code|left; pass?|1|s|left; rows|1|d|right; dim|1|d|right; dtype?|1|s|left; @timed;
--   gbps as rate|GB/s|.3g|right; share as share of a copy|%|.3g|right; peer as copied by|1|code|left;
--   vs_from as share from?|1|s|left; @checked
-- note: What works op by op moves more bytes than counted. Above 100 %: cache hits.
SELECT params ->> '$.operator' AS operator, params ->> '$.pass' AS pass,
       params ->> '$.rows' AS rows, params ->> '$.dim' AS dim,
       params ->> '$.dtype' AS dtype, implementation, time_ms, low_ms, high_ms,
       gbps, 100 * vs_peer AS share, peer, vs_from, worst_error, bound,
       scratch, n, checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND role IS NOT 'peer' AND status <> 'skipped'
 ORDER BY operator, pass <> 'forward', pass, dtype <> 'fp32', dtype, rows, dim, row_order;
