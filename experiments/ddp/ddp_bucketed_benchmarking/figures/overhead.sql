-- figure: lines
-- title: Communication overhead by bucket size: model and measurement
-- caption: Exposed communication over mean bucket size. `s/(n·w) + n·o`: backward as fast as communication, as the
--   problem assumes. `measured backward`: with the measured backward time. o and w are fitted to back-to-back
--   all-reduces; without a fit that holds, only the measurement is drawn.
-- experiment: ddp_bucketed_benchmarking
-- fills: b
-- x: bytes|B|log2
-- y: exposed|ms|log10
-- series: series
-- panel: model, batch, context, precision, ranks, backend, wire, device
-- command: syslab run distributed_communication_single_node {experiment}
WITH point AS (
  SELECT v.*, v.gradient_bytes AS s, v.gradient_bytes / v.buckets AS b, l.alpha AS o, l.per_byte AS per_byte,
         1e-3 * v.backward / v.gradient_bytes AS g
    FROM v_data_parallel v
    LEFT JOIN v_transfer_law l ON l.operation = 'all_reduce' AND l.series = 'pipelined' AND l.ranks = v.ranks
                              AND l.comparability_key = v.comparability_key
                              AND l.implementation = v.backend AND l.fits
   WHERE v.experiment = ?1 AND v.strategy IN ('overlap', 'bucketed') AND v.is_good AND v.buckets > 0
   GROUP BY v.attempt_id
)
SELECT b AS bytes, exposed, 'measured' AS series, model, batch, context,
       "precision", ranks, backend, wire, device, 'ok' AS status, run_uid
  FROM point
 UNION ALL
SELECT b, 1e3 * (b * per_byte + buckets * o), 's/(n·w) + n·o', model, batch,
       context, "precision", ranks, backend, wire, device, 'ok', run_uid
  FROM point WHERE o IS NOT NULL
 UNION ALL
SELECT b, 1e3 * (o + b * per_byte + max(0, (buckets - 1) * (o + b * per_byte - b * g))),
       'measured backward', model, batch, context, "precision",
       ranks, backend, wire, device, 'ok', run_uid
  FROM point WHERE o IS NOT NULL
 ORDER BY series DESC, bytes;
