-- title: torch.compile: the whole model
-- caption: Our analogue of compiling: mean ± standard deviation (n − 1) of forward with the loss, or of a training
--   step, and speed-ups over `eager` and PyTorch eager within one protocol.
-- experiment: torch_compile
-- fills: b
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; precision?|1|s|left; what|1|s|left;
--   implementation|1|code|left; time|ms|ci(low, high)|right; vs_eager as vs eager|×|.3g|right;
--   vs_pytorch as vs PyTorch eager|×|.3g|right; peak|GiB|.4g|right; paired as speed-up from?|1|s|left;
--   nodes?|1|d|right; n|1|d|right; protocol?|1|s|left; device?|1|s|left; checked|1|s|left; status|1|status|left
-- note: Rows `pytorch …` are imported times of another program whose outputs were not compared. They have the status
--   `error` and no numbers.
--   `speed-up from`: whether both sides come from one run.
WITH t AS MATERIALIZED (
  SELECT v.*, metrics AS found,
         v.implementation GLOB 'pytorch_*' AS is_pytorch
    FROM v_measured v
   WHERE experiment = ?1 AND v.status <> 'skipped'
),
s AS (
  SELECT *, 1e3 * coalesce(found ->> '$.time_mean', found ->> '$.time') AS ms, 1e3 * (found ->> '$.time_stddev') AS sd
    FROM t
),
-- Of several people's imports the newest.
peer AS (
  SELECT *, row_number() OVER (PARTITION BY params, protocol, comparability_key
                                   ORDER BY run_order DESC, attempt_uid DESC) AS place
    FROM s
   WHERE implementation GLOB 'pytorch_eager*' AND ms > 0
)
SELECT s.params ->> '$.model' AS model, s.params ->> '$.batch' AS batch, s.params ->> '$.context' AS context,
       s.params ->> '$.precision' AS precision,
       CASE s.params ->> '$.mode' WHEN 'train' THEN 'step' WHEN 'forward' THEN 'forward'
                                  ELSE 'forward and backward' END AS what,
       s.implementation, s.ms AS time, s.ms - s.sd AS low, s.ms + s.sd AS high,
       iif(s.is_good OR s.is_pytorch, e.ms / s.ms, NULL) AS vs_eager,
       iif(s.is_good OR s.is_pytorch, p.ms / s.ms, NULL) AS vs_pytorch,
       iif(coalesce(e.run_uid, s.run_uid) = s.run_uid AND coalesce(p.run_uid, s.run_uid) = s.run_uid,
           'one run', 'different runs') AS paired,
       (s.found ->> '$.peak_bytes') / 1073741824 AS peak,
       s.found ->> '$.graph_nodes' AS nodes, s.n, s.protocol, s.device,
       iif(s.checked, 'yes', 'no') AS checked, s.status, s.message, s.run_uid
  FROM s
  LEFT JOIN s e ON e.params = s.params AND e.implementation = 'eager' AND e.is_good
               AND e.comparability_key = s.comparability_key AND e.protocol = s.protocol
  LEFT JOIN peer p ON p.params = s.params AND p.protocol = s.protocol AND p.comparability_key = s.comparability_key
                  AND p.place = 1
 ORDER BY CASE model WHEN 'tiny' THEN 0 WHEN 'cpu10m' THEN 1 WHEN 'small' THEN 2 WHEN 'medium' THEN 3
                     WHEN 'large' THEN 4
                     WHEN 'xl25' THEN 5
                     ELSE 6 END, model, s.params ->> '$.context', precision <> 'fp32', precision, what, s.device,
          CASE s.implementation WHEN 'eager' THEN 1 WHEN 'fused' THEN 2 WHEN 'graph' THEN 3
                                ELSE 4 END, s.implementation;
