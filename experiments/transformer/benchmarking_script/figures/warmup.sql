-- figure: lines
-- title: Step time by index, warm-up included
-- caption: Time of each step from the first of its process on, warm-up steps included; one process a case.
-- experiment: benchmarking_script
-- x: step|1|linear
-- y: time|ms|log10
-- series: warmup
-- panel: model, implementation, context, precision, protocol, device
-- fills: c
-- command: syslab run benchmarking_script --preset warmup --isolation case
WITH studied AS (
  SELECT DISTINCT json_remove(params, '$.warmup') AS point, implementation, comparability_key, protocol
    FROM v_measured
   WHERE experiment = ?1 AND is_good AND params ->> '$.warmup' < 5 AND facts ->> '$.isolation' = 'case'
)
SELECT row_number() OVER (PARTITION BY v.attempt_id ORDER BY s.name = 'time', x.launch, x.rank, x.idx) AS step,
       1e3 * x.value AS time, 'w = ' || (v.params ->> '$.warmup') AS warmup,
       v.params ->> '$.model' AS model, v.implementation,
       v.params ->> '$.context' AS context, v.params ->> '$.precision' AS precision,
       v.protocol, v.device, 'ok' AS status, v.run_uid
  FROM v_measured v
  JOIN studied p ON p.point = json_remove(v.params, '$.warmup') AND p.implementation = v.implementation
                AND p.comparability_key = v.comparability_key AND p.protocol = v.protocol
  JOIN series s ON s.attempt_id = v.attempt_id AND s.name IN ('warmup', 'time') AND s.unit = 's'
  JOIN sample x ON x.series_id = s.id
 WHERE v.experiment = ?1 AND v.is_good AND x.value > 0 AND v.facts ->> '$.isolation' = 'case'
 ORDER BY model, v.implementation, v.params ->> '$.warmup', step;
