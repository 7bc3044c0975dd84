-- sentence: {model} in {precision}, {batch} × {context} tokens, {ranks} ranks ({backend}, gradients {sent}, {device}, protocol {protocol},
--   {implementation}): communication takes {naive} ms as {messages} all-reduces, {exposed} ms as one flat all-reduce with copies and {of_views} ms
--   with gradients stored in the flat buffer. The step takes {naive_ms} ms naive, {time_ms} ms flat with copies ({verdict}) and {views_ms} ms flat
--   without ({views_verdict}). {why}
-- experiment: minimal_ddp_flat_benchmarking
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; sent|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; exposed|ms|.3g|right; of_views|ms|.3g|right;
--   naive|ms|.3g|right; messages|1|d|right; time_ms|ms|ci(low_ms, high_ms)|right; views_ms|ms|ci(views_low, views_high)|right;
--   naive_ms|ms|ci(naive_low, naive_high)|right; verdict|1|s|left; views_verdict|1|s|left; why|1|s|left
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS sent, v.device, v.protocol, v.implementation, v.exposed, w.exposed AS of_views,
       n.exposed AS naive, n.buckets AS messages, v.time_ms, v.low_ms, v.high_ms, w.time_ms AS views_ms, w.low_ms AS views_low, w.high_ms AS views_high,
       n.time_ms AS naive_ms, n.low_ms AS naive_low, n.high_ms AS naive_high,
       CASE WHEN v.high_ms < n.low_ms THEN 'faster' WHEN v.low_ms > n.high_ms THEN 'slower'
            WHEN v.high_ms IS NULL OR n.high_ms IS NULL THEN 'too few samples for an interval'
            ELSE 'no measurable difference' END AS verdict,
       CASE WHEN w.high_ms < n.low_ms THEN 'faster' WHEN w.low_ms > n.high_ms THEN 'slower'
            WHEN w.high_ms IS NULL OR n.high_ms IS NULL THEN 'too few samples for an interval'
            ELSE 'no measurable difference' END AS views_verdict,
       CASE WHEN v.exposed > w.exposed AND n.exposed > w.exposed
              THEN printf('The same bytes move: one call saves %d launches and sends at the full bandwidth, but copying into and out of the flat buffer costs %.3g ms again.', n.buckets - 1, v.exposed - w.exposed)
            WHEN n.exposed > w.exposed
              THEN printf('The same bytes move: one call saves %d launches and sends at the full bandwidth.', n.buckets - 1)
            ELSE 'The same bytes move, and at these sizes the latency of a call is small beside them.' END AS why,
       max(v.run_uid, w.run_uid, n.run_uid) AS run_uid
  FROM v_data_parallel v
  JOIN v_data_parallel w ON w.experiment = v.experiment AND w.point = v.point AND w.ranks = v.ranks AND w.protocol IS v.protocol
                        AND w.comparability_key = v.comparability_key AND w.implementation = v.implementation AND w.is_good
                        AND w.strategy = 'flat_view'
  JOIN v_data_parallel n ON n.experiment = v.experiment AND n.point = v.point AND n.ranks = v.ranks AND n.protocol IS v.protocol
                        AND n.comparability_key = v.comparability_key AND n.implementation = v.implementation AND n.is_good
                        AND n.strategy = 'naive'
 WHERE v.experiment = ?1 AND v.strategy = 'flat_copy' AND v.is_good
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.backend, v.wire <> 'own', v.wire;
