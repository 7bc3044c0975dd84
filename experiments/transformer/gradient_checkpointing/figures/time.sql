-- figure: lines
-- title: Gradient checkpointing: step time by segment size
-- caption: Median step time with its 95 % interval over blocks per checkpoint segment (0.5: attention and feed-forward
--   apart); beside the axis the step without checkpointing.
-- experiment: gradient_checkpointing
-- x: segment|blocks|log2
-- y: time|ms|auto
-- apart: kept
-- interval: low, high
-- series: implementation
-- panel: model, layers, batch, context, precision, mode, protocol, device
SELECT params ->> '$.segment' AS segment, iif(params ->> '$.segment' = 0, 'all kept', '') AS kept,
       iif(is_good, time_ms, NULL) AS time,
       low_ms AS low, high_ms AS high, implementation, params ->> '$.model' AS model, params ->> '$.layers' AS layers,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context, params ->> '$.precision' AS precision,
       params ->> '$.mode' AS mode, protocol, device, status, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND ending <> 'not_asked'
 ORDER BY model, layers, context, batch, precision, mode, device, protocol, row_order, segment;
