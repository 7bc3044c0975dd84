-- title: Mixed precision: forward and backward
-- caption: Mean of ten calls (forward with the loss) in fp32 and in half precision; speed-ups are of medians, with 95 %
--   intervals. Times in fp32 are those of “Benchmarking script” where this problem has no run of its own.
-- experiment: benchmarking_mixed_precision
-- command: syslab run benchmarking_script benchmarking_mixed_precision --impl eager
-- fills: c
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; implementation?|1|code|left;
--   precision as half is?|1|s|left; forward_fp32 as forward fp32|ms|.4g|right; forward as forward half|ms|.4g|right;
--   forward_gain as speed-up|×|ci(forward_low, forward_high)|right; backward_fp32 as backward fp32|ms|.4g|right;
--   backward as backward half|ms|.4g|right; backward_gain as speed-up|×|ci(backward_low, backward_high)|right;
--   why as remark?|1|s|left; protocol?|1|s|left; device?|1|s|left
-- note: fp32 is without tensor cores; its times may be those of a training step (`benchmarking_script`).
WITH timed AS MATERIALIZED (SELECT * FROM v_pass),
paired AS (
  SELECT h.model, h.batch, h.context, h.implementation, h."precision",
         f.mean_ms AS forward_fp32, h.mean_ms AS forward, f.ms / h.ms AS forward_gain,
         f.least_ms / h.most_ms AS forward_low, f.most_ms / h.least_ms AS forward_high,
         b.mean_ms AS backward_fp32, k.mean_ms AS backward,
         b.ms / k.ms AS backward_gain, b.least_ms / k.most_ms AS backward_low,
         b.most_ms / k.least_ms AS backward_high, h.protocol, h.device,
         -- Of several rows in fp32 this experiment's.
         max(h.run_uid, f.run_uid) AS run_uid, min(f.experiment <> h.experiment) AS far,
         h.parameters, '–' AS why
    FROM timed h
    JOIN timed k ON k.attempt_id = h.attempt_id AND k.what = 'backward'
    JOIN timed f ON f.alike = h.alike AND f."precision" = 'fp32'
                AND f.implementation = h.implementation AND f.comparability_key = h.comparability_key
                AND f.protocol = h.protocol AND f.what = 'forward'
                AND f.within AND f.experiment IN (?1, 'benchmarking_script')
    JOIN timed b ON b.attempt_id = f.attempt_id AND b.what = 'backward' AND b.place = 1
   WHERE h."precision" IN ('bf16_amp', 'fp16_amp', 'bf16_fused')
     AND h.what = 'forward' AND h.within AND h.experiment = ?1
   GROUP BY h.attempt_id
),
-- Models that the timing program has in fp32, and no such pair of forward and backward: their forward in half
-- precision, on whichever machine of the kind.
lone AS (
  SELECT f.model, f.batch, f.context, f.implementation, p."precision",
         f.mean_ms AS forward_fp32, h.mean_ms AS forward, f.ms / h.ms AS forward_gain,
         f.least_ms / h.most_ms AS forward_low, f.most_ms / h.least_ms AS forward_high,
         b.mean_ms AS backward_fp32, f.protocol, f.device,
         -- The newest, and the row that it is of.
         max(coalesce(h.run_uid, f.run_uid)) AS run_uid,
         f.parameters, CASE WHEN h.attempt_id IS NULL
                             THEN iif(EXISTS (SELECT 1 FROM v_newest n
                                               WHERE n.experiment IN (?1, 'benchmarking_script')
                                                 AND n.status = 'oom' AND n.implementation = f.implementation
                                                 AND n.params ->> '$.model' = f.model
                                                 AND n.params ->> '$.context' = f.context
                                                 AND n.params ->> '$.precision' = p."precision"),
                                      'out of memory in half precision', 'not run in half precision')
                           WHEN h.comparability_key = f.comparability_key THEN 'forward only'
                            ELSE 'forward only, half on another machine' END AS why
    FROM timed f
    JOIN paired p ON p.device = f.device AND p.protocol = f.protocol
                 AND p.implementation = f.implementation AND p.context = f.context AND p.batch = f.batch
                 AND p.parameters < f.parameters
    LEFT JOIN timed b ON b.attempt_id = f.attempt_id AND b.what = 'backward' AND b.place = 1
    LEFT JOIN timed h ON h.alike = f.alike AND h."precision" = p."precision"
                     AND h.implementation = f.implementation AND h.device = f.device AND h.protocol = f.protocol
                     AND h.what = 'forward' AND h.within AND h.experiment = ?1
   WHERE f."precision" = 'fp32' AND f.what = 'forward' AND f.place = 1 AND f.experiment = 'benchmarking_script'
     AND NOT EXISTS (SELECT 1 FROM paired x WHERE x.model = f.model)
   GROUP BY f.model, f.batch, f.context, f.implementation, p."precision", f.protocol, f.device
)
SELECT *
  FROM (SELECT * FROM paired
         UNION ALL
        SELECT model, batch, context, implementation, "precision", forward_fp32, forward, forward_gain, forward_low,
               forward_high, backward_fp32, NULL, NULL, NULL, NULL, protocol, device, run_uid, NULL, parameters, why
          FROM lone)
 ORDER BY device LIKE 'NVIDIA%' DESC, implementation, "precision" <> 'bf16_amp',
          "precision", context, parameters, device, protocol;
