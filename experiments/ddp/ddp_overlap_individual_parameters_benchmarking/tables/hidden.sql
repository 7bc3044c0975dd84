-- sentence: {model} in {precision}, {batch} × {context} tokens on {ranks} ranks ({backend}, gradients {sent}, {device},
--   protocol {protocol}, {implementation}): a step takes {time_ms} ms with overlap, {naive_ms} naive and {flat_ms} flat
--   (with copies); without communication {none_ms} ms, so {verdict}. {exposed} ms of communication remain after
--   backward, versus {naive} naive and {flat} flat. {why}{runs}
-- experiment: ddp_overlap_individual_parameters_benchmarking
-- fills: a
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; sent|1|s|left; device|1|s|left; protocol|1|s|left; implementation|1|code|left;
--   time_ms|ms|.4g|right; naive_ms|ms|.4g|right; flat_ms|ms|.4g|right; none_ms|ms|.4g|right; recovered|%|.3g|right;
--   verdict|1|s|left; exposed|ms|.3g|right; naive|ms|.3g|right; flat|ms|.3g|right; why|1|s|left; runs|1|s|left
WITH v AS MATERIALIZED (
  SELECT *
    FROM (SELECT d.*, b.value AS back, b.ci_low AS back_low, b.ci_high AS back_high,
                 row_number() OVER (PARTITION BY d.point, d.ranks, d.comparability_key,
                                                 d.protocol, d.implementation, d.strategy
                                        ORDER BY d.experiment <> ?1, d.run_order DESC) AS place
            FROM v_data_parallel d
            LEFT JOIN metric b ON b.attempt_id = d.attempt_id AND b.name = 'backward' AND b.rank = -1
           WHERE d.experiment IN (?1, 'naive_ddp_benchmarking', 'minimal_ddp_flat_benchmarking',
                                  'ddp_bucketed_benchmarking') AND d.is_good
             AND d.strategy IN ('none', 'naive', 'flat_copy', 'overlap'))
   WHERE place = 1
),
-- The step without communication has one backend and wire: its own, or any.
beside AS (
  SELECT v.attempt_id, n.attempt_id AS none_id,
         row_number() OVER (PARTITION BY v.attempt_id
                                ORDER BY n.point = v.point DESC, n.run_order DESC, n.attempt_uid DESC) AS place
    FROM v
    JOIN v n ON n.alike = v.alike AND n.ranks = v.ranks AND n.protocol IS v.protocol
            AND n.comparability_key = v.comparability_key
            AND n.implementation = v.implementation AND n.strategy = 'none'
   WHERE v.strategy = 'overlap'
)
-- What communication costs is the naive step less the one without it; overlap recovers the part of that which its own
-- step is shorter by.
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend,
       iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS sent, v.device, v.protocol,
       v.implementation, v.time_ms, n.time_ms AS naive_ms, f.time_ms AS flat_ms,
       o.time_ms AS none_ms, v.exposed, n.exposed AS naive, f.exposed AS flat,
       iif(n.low_ms > o.high_ms, 100 * (1 - (v.time_ms - o.time_ms) / (n.time_ms - o.time_ms)), NULL) AS recovered,
       CASE WHEN n.low_ms IS NULL OR o.high_ms IS NULL OR v.low_ms IS NULL
              THEN 'too few samples for intervals, so no share is given'
            WHEN n.low_ms <= o.high_ms
              THEN 'communication makes no measurable difference, so there is nothing to recover'
            WHEN v.low_ms > n.high_ms THEN 'overlap is slower than naive DDP and recovers nothing'
            WHEN v.high_ms >= n.low_ms THEN 'there is no measurable difference between overlap and naive DDP'
            ELSE printf('overlap recovers %.3g %% of what communication costs',
                        100 * (1 - (v.time_ms - o.time_ms) / (n.time_ms - o.time_ms))) END AS verdict,
       CASE WHEN v.back_low > o.back_high
              THEN printf('Backward slows from %.3g to %.3g ms under the all-reduces, '
                          || 'probably because they take %s from it (not measured).', 1e3 * o.back, 1e3 * v.back,
                          iif(v.backend = 'shm', 'processor time and memory bandwidth', 'SMs and memory bandwidth'))
            WHEN v.back_high IS NULL OR o.back_high IS NULL
              THEN 'Whether backward slows under the all-reduces was not measured.'
            ELSE 'Backward is not measurably slower under the all-reduces.' END AS why,
       iif(v.run_uid = n.run_uid AND v.run_uid = f.run_uid AND v.run_uid = o.run_uid,
           '', ' The steps are from different runs on one machine.') AS runs, v.run_uid
  FROM v
  JOIN v n ON n.point = v.point AND n.ranks = v.ranks AND n.protocol IS v.protocol
          AND n.comparability_key = v.comparability_key
          AND n.implementation = v.implementation AND n.strategy = 'naive'
  JOIN v f ON f.point = v.point AND f.ranks = v.ranks AND f.protocol IS v.protocol
          AND f.comparability_key = v.comparability_key
          AND f.implementation = v.implementation AND f.strategy = 'flat_copy'
  JOIN beside b ON b.attempt_id = v.attempt_id AND b.place = 1
  JOIN v o ON o.attempt_id = b.none_id
 WHERE v.strategy = 'overlap'
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.backend, v.wire <> 'own', v.wire;
