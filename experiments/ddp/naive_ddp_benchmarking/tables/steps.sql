-- title: What naive data parallel costs
-- caption: Median time of a whole step with its 95 % interval, of the slowest rank at each; `over none` is what it takes more than the
--   same step without communication. From the steps' own events: its phases, of which `exposed` is from the last
--   gradient to the end of the last all-reduce, and `communicating`, the sum over all-reduces. Only of steps whose strategy was certified to the bit on these ranks.
-- experiment: naive_ddp_benchmarking
-- fills: *
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right; backend?|1|code|left; wire?|1|s|left; strategy|1|s|left;
--   bucket_mb as bucket limit?|MiB|d|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right;
--   over_none as over none?|ms|ci(over_none_low, over_none_high)|right; forward|ms|.3g|right; backward|ms|.3g|right; exposed|ms|.3g|right; forecast_exposed as forecast?|ms|.3g|right;
--   updating as update|ms|.3g|right; communicating|ms|.3g|right; overlapped|%|.3g|right; buckets as all-reduces|1|d|right;
--   gradient_bytes as bytes|B|d|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: `forecast`, of strategy `planned` alone: what the plan was to expose, told before the first step.
-- note: `wire`: what gradients are rounded to before they travel; own: as they lie.
-- note: `batch` is of all ranks together. Ranks that share cores do not hide communication: there is no time to hide it in.
SELECT model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       batch, context, "precision", ranks, backend, wire, strategy, iif(bucket_mb > 0, bucket_mb, '–') AS bucket_mb, implementation, time_ms, low_ms, high_ms,
       over_none, over_none_low, over_none_high, forward, backward, exposed,
       iif(strategy = 'planned', forecast_exposed, '–') AS forecast_exposed, updating, communicating,
       iif(is_silent, '–', overlapped) AS overlapped,
       buckets, gradient_bytes, n, noise, protocol, device, status, message, run_uid
  FROM v_data_parallel
 WHERE experiment = ?1 AND status <> 'skipped'
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context, "precision", ranks, row_order, backend, wire <> 'own', wire, strategy <> 'none', strategy <> 'naive', strategy, v_data_parallel.bucket_mb;
