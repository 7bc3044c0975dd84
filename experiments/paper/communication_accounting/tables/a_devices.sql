-- sentence: {blocks} blocks of 2·D·F parameters, D = {d_model}, F = {d_ff}, have {parameters} parameters. In fp32,
--   weights take {weights} GB, gradients the same, Adam's moments {moments} GB: {state} GB in total ({gib} GiB), or
--   {filled} devices of {device} GB, so {devices} ({devices_gib} with GiB). Saved for backward: {token} bytes per token
--   in bf16, the inputs of all layers.
-- experiment: communication_accounting
-- fills: a
-- columns: blocks|1|d|right; d_model|1|d|right; d_ff|1|d|right; parameters|1|s|right; weights|1|s|right;
--   moments|1|s|right; state|1|s|right; gib|1|.0f|right; filled|1|.2f|right; device|1|d|right; devices|1|d|right;
--   devices_gib|1|d|right; token|1|s|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.blocks' AS blocks, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, printf('%,d', found ->> '$.parameters') AS parameters,
       printf('%,.0f', (found ->> '$.weight_bytes') / 1e9) AS weights,
       printf('%,.0f', (found ->> '$.moment_bytes') / 1e9) AS moments,
       printf('%,.0f', (found ->> '$.state_bytes') / 1e9) AS state, (found ->> '$.state_bytes') / 1073741824 AS gib,
       found ->> '$.filled_decimal' AS filled, params ->> '$.device_gb' AS device,
       found ->> '$.devices_decimal' AS devices,
       found ->> '$.devices_binary' AS devices_gib, printf('%,d', found ->> '$.token_bytes') AS token, run_uid
  FROM t
 WHERE place = 1 AND status = 'ok' AND params ->> '$.tokens' = 0
 ORDER BY d_model, d_ff, blocks;
