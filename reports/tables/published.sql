-- title: Published numbers
-- caption: What others published for the same case, and published over ours. Only where the
--   kind of device, the dtype and the phase are the same.
-- experiment: *
-- empty: No published numbers for these cases on this kind of device.
-- columns: case|1|s|left; implementation|1|code|left; what?|1|s|left; ours|1|ci(low, high)|right;
--   published|1|.4g|right; unit?|1|s|left; published_over_ours|×|.3g|right; device|1|s|left; source|1|s|left;
--   note?|1|s|left; protocol?|1|s|left
-- note: Published numbers are quoted, not verified, and have no interval.
WITH entry AS MATERIALIZED (
  SELECT j.key AS place, j.value ->> '$.device' AS class, j.value ->> '$.world_size' AS world_size,
         j.value -> '$.implementations' AS implementations,
         j.value ->> '$.mine' AS mine, j.value -> '$.params' AS asked,
         j.value ->> '$.metric' AS name, j.value ->> '$.value' AS value, j.value ->> '$.unit' AS unit,
         j.value ->> '$.scale' AS scale, j.value ->> '$.source' AS source, j.value ->> '$.note' AS note,
         j.value ->> '$.params.seq' AS seq, j.value ->> '$.params.dtype' AS dtype, j.value ->> '$.params.model' AS model
    FROM json_each(?2) j
   WHERE j.value ->> '$.experiment' = ?1
),
-- What most entries say is looked at before all that they say.
result AS MATERIALIZED (
  SELECT *, ' ' || replace(gpu_name, '-', ' ') || ' ' AS words, params ->> '$.seq' AS seq,
         params ->> '$.dtype' AS dtype, params ->> '$.model' AS model
    FROM v_newest
   WHERE experiment = ?1 AND gpu_name IS NOT NULL AND task = 'measure'
     AND status = 'ok' AND checked AND coalesce(params ->> '$.wire', 'own') = 'own'
)
SELECT (SELECT group_concat(p.key || ' '
                            || CASE p.type WHEN 'true' THEN 'yes' WHEN 'false' THEN 'no' ELSE p.value END, ', ')
          FROM json_each(e.asked) p) AS "case",
       m.implementation || iif(m.is_mine, ' (mine)', '') AS implementation, replace(x.name, '_', ' ') AS what,
       x.value / e.scale AS ours, x.ci_low / e.scale AS low, x.ci_high / e.scale AS high,
       e.value AS published, e.unit, e.value * e.scale / x.value AS published_over_ours, m.gpu_name AS device, e.source,
       coalesce(e.note, '') AS note, m.protocol, m.run_uid
  FROM entry e
  -- A kind of device is a word of the name: "NVIDIA A800-SXM4-80GB" is an A800, "GB200" no B200.
  JOIN result m ON m.world_size = e.world_size AND (e.seq IS NULL OR m.seq IS e.seq)
               AND (e.dtype IS NULL OR m.dtype IS e.dtype)
               AND (e.model IS NULL OR m.model IS e.model) AND instr(m.words, ' ' || e.class || ' ') > 0
  JOIN metric x ON x.attempt_id = m.attempt_id AND x.name = e.name AND x.value > 0
               AND x.rank = (SELECT y.rank FROM metric y WHERE y.attempt_id = m.attempt_id AND y.name = e.name
                              ORDER BY y.rank <> -1, y.value DESC, y.rank LIMIT 1)
 WHERE (e.implementations = 'null' OR m.is_mine AND e.mine
        OR EXISTS (SELECT 1 FROM json_each(e.implementations) g WHERE m.implementation GLOB g.value AND NOT m.is_mine))
   AND NOT EXISTS (SELECT 1 FROM json_each(e.asked) p WHERE m.params ->> ('$.' || p.key) IS NOT p.value)
 ORDER BY e.place, m.implementation, m.protocol;
