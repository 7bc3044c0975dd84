-- sentence: {model} in {precision}, {batch} rows of {context} tokens over {ranks} ranks ({backend}, gradients {sent}, {device}, protocol {protocol}, {implementation}): gradients that travel
--   under the backward pass leave {exposed} ms behind it, where {naive} ms follow it one by one and {flat} ms in one message; {overlapped} % of the
--   communication is hidden. The step takes {time_ms} ms beside {naive_ms} and {flat_ms} ms, and {none_ms} ms without communication: beside one by one,
--   overlap {verdict}.
-- experiment: ddp_overlap_individual_parameters_benchmarking
-- fills: a
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; sent|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; exposed|ms|.3g|right; naive|ms|.3g|right;
--   flat|ms|.3g|right; overlapped|%|.3g|right; time_ms|ms|.4g|right; naive_ms|ms|.4g|right; flat_ms|ms|.4g|right; none_ms|ms|.4g|right;
--   verdict|1|s|left
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.sent, v.device, v.protocol, v.implementation, v.exposed, n.exposed AS naive,
       f.exposed AS flat, v.overlapped, v.time_ms, n.time_ms AS naive_ms, f.time_ms AS flat_ms, v.none_ms,
       CASE WHEN v.high_ms < n.low_ms THEN 'shortens it' WHEN v.low_ms > n.high_ms THEN 'lengthens it'
            ELSE 'makes no difference that the intervals of the medians show' END AS verdict, v.run_uid
  FROM v_data_parallel v
  JOIN v_data_parallel n ON n.experiment = v.experiment AND n.point = v.point AND n.ranks = v.ranks AND n.protocol IS v.protocol
                        AND n.comparability_key = v.comparability_key AND n.implementation = v.implementation AND n.is_good
                        AND n.strategy = 'naive'
  JOIN v_data_parallel f ON f.experiment = v.experiment AND f.point = v.point AND f.ranks = v.ranks AND f.protocol IS v.protocol
                        AND f.comparability_key = v.comparability_key AND f.implementation = v.implementation AND f.is_good
                        AND f.strategy = 'flat_copy'
 WHERE v.experiment = ?1 AND v.strategy = 'overlap' AND v.is_good AND v.none_ms IS NOT NULL
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.backend, v.wire <> 'own', v.wire;
