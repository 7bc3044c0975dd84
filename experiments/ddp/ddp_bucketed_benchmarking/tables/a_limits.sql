-- sentence: {model} in {precision}, {batch} rows of {context} tokens over {ranks} ranks ({backend}, gradients {sent}, {device}, protocol {protocol}, {implementation}): limits from {least} to
--   {most} MiB make {calls}, and steps from {fastest_ms} ms (limit {fastest}) to {slowest_ms} ms (limit {slowest}): {verdict}.
--   Expected is that many buckets pay for many calls and few wait for the last; a limit packs whole tensors and splits none, and where the backward pass
--   takes longer than the link all but the last bucket hide. Slow links and many small tensors show it: `ddp_small_tensors`.
-- experiment: ddp_bucketed_benchmarking
-- fills: a
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; sent|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; least|MiB|d|right; most|MiB|d|right;
--   calls|1|s|left; fastest|MiB|d|right; fastest_ms|ms|.4g|right; slowest|MiB|d|right; slowest_ms|ms|.4g|right;
--   verdict|1|s|left
WITH one AS (
  SELECT *, row_number() OVER here AS up, row_number() OVER there AS down, min(bucket_mb) OVER same AS least,
         max(bucket_mb) OVER same AS most, max(buckets) OVER same AS most_calls, min(buckets) OVER same AS least_calls
    FROM v_data_parallel
   WHERE experiment = ?1 AND strategy = 'bucketed' AND is_good
  WINDOW same AS (PARTITION BY point, ranks, comparability_key, protocol, implementation),
         here AS (same ORDER BY time_ms, bucket_mb), there AS (same ORDER BY time_ms DESC, bucket_mb)
)
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.sent, v.device, v.protocol, v.implementation, v.least, v.most,
       CASE WHEN v.most_calls > v.least_calls THEN printf('%d to %d all-reduces', v.most_calls, v.least_calls)
            WHEN v.most_calls = 1 THEN 'one all-reduce, all of them' ELSE printf('%d all-reduces, all of them', v.most_calls) END AS calls,
       v.bucket_mb AS fastest, v.time_ms AS fastest_ms, w.bucket_mb AS slowest, w.time_ms AS slowest_ms,
       iif(v.high_ms < w.low_ms, 'the intervals of these two are apart', 'even these two have intervals that overlap') AS verdict, v.run_uid
  FROM one v
  JOIN one w ON w.point = v.point AND w.ranks = v.ranks AND w.comparability_key = v.comparability_key AND w.protocol IS v.protocol
            AND w.implementation = v.implementation AND w.down = 1
 WHERE v.up = 1 AND v.bucket_mb <> w.bucket_mb
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.backend, v.wire <> 'own', v.wire;
