-- title: Naive DDP
-- caption: Median step time with its 95 % interval, slowest rank. Phases are timed by events (on a CPU by the clock),
--   each on its slowest rank, so they may add up to more than the step. Protocol cs336: 5 warm-up steps, 10 measured;
--   version 1 of it verified fewer steps.
-- about over_none: `over none`: beyond the same step without communication.
-- about exposed: `exposed`: communication left after backward.
-- experiment: naive_ddp_benchmarking
-- fills: *
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right;
--   backend?|1|code|left; wire?|1|s|left; strategy|1|s|left; bucket_mb as bucket limit?|MiB|d|right;
--   implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right;
--   over_none as over none?|ms|ci(over_none_low, over_none_high)|right;
--   of_ours as of ours?|×|ci(of_ours_low, of_ours_high)|right; forward|ms|.3g|right; backward|ms|.3g|right;
--   exposed|ms|.3g|right; forecast_exposed as forecast?|ms|.3g|right; updating as update|ms|.3g|right;
--   communicating|ms|.3g|right; overlapped as under backward|%|.3g|right; buckets as all-reduces|1|d|right;
--   gradient_bytes as bytes|B|d|right; of as experiment?|1|code|left; n|1|d|right; noise?|1|s|left; protocol?|1|s|left;
--   device?|1|s|left; status|1|status|left
-- note: `communicating`: sum over all-reduces; `under backward`: the share of it that ran under backward.
-- note: `forecast`: `exposed` as predicted before the first step by strategy `planned`, which plans its buckets.
-- note: Steps that an earlier problem timed stand here as well: `experiment` names it.
-- note: `wire`: dtype in which gradients are communicated; `own`: uncompressed.
-- note: `of ours`: time of a class, or of torch's own, over that of `ours_in_torch`, which is our strategy around the
--   same torch module; its step without communication is also the one that they are over.
-- note: `batch` is the global batch. Ranks that share CPU cores cannot overlap communication with compute.
WITH asked AS MATERIALIZED (
  SELECT *,
         row_number() OVER (PARTITION BY point, ranks, comparability_key, protocol, implementation, strategy, bucket_mb
                                ORDER BY experiment <> ?1, is_good DESC, run_order DESC) AS place
    FROM v_data_parallel
   WHERE status <> 'skipped'
     AND (experiment = ?1
          OR (experiment = 'naive_ddp_benchmarking'
              AND ?1 IN ('minimal_ddp_flat_benchmarking', 'ddp_overlap_individual_parameters_benchmarking'))
          OR (experiment = 'minimal_ddp_flat_benchmarking' AND strategy = 'flat_copy'
              AND ?1 = 'ddp_overlap_individual_parameters_benchmarking'))
)
SELECT model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       batch, context, "precision", ranks, backend, wire, strategy,
       iif(bucket_mb > 0, bucket_mb, '–') AS bucket_mb, implementation, time_ms, low_ms, high_ms,
       over_none, over_none_low, over_none_high, iif(is_mine OR implementation = 'torchs_own', of_ours, '–') AS of_ours,
       of_ours_low, of_ours_high, forward, backward, exposed,
       iif(strategy = 'planned', forecast_exposed, '–') AS forecast_exposed, updating, communicating,
       iif(is_silent, '–', overlapped) AS overlapped,
       buckets, gradient_bytes, experiment AS "of", n, noise, protocol, device,
       status, message, facts -> '$.needs' AS needs, run_uid
  FROM asked
 WHERE place = 1
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context, "precision", ranks, row_order,
          backend, wire <> 'own', wire, strategy <> 'none', strategy <> 'naive', strategy, asked.bucket_mb;
