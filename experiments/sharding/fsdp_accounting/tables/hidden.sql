-- sentence: {model} in {precision}, {batch} × {context} tokens on {ranks} ranks ({backend}, gradients {travelling},
--   {device}, protocol {protocol}, {implementation}), gathered by {granularity}: the{units} all-gathers of a step take
--   {gathering} ms; compute waits for them {exposed_forward} in forward, {share} % of it, and {exposed_backward} ms in
--   backward. {verdict}.{longest} {why}
-- experiment: fsdp_accounting
-- fills: b
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; travelling|1|s|left; device|1|s|left; protocol|1|s|left; implementation|1|code|left;
--   granularity|1|s|left; gathering|ms|.2g|right; units|1|s|left; exposed_forward|1|s|right; share|%|s|right;
--   exposed_backward|ms|.2g|right; verdict|1|s|left; longest|1|s|left; why|1|s|left
SELECT params ->> '$.model' AS model, params ->> '$.precision' AS "precision", params ->> '$.batch' AS batch,
       params ->> '$.context' AS context, world_size AS ranks, backend,
       coalesce('in ' || nullif(params ->> '$.wire', 'own'), 'uncompressed') AS travelling,
       device, protocol, implementation, params ->> '$.granularity' AS granularity,
       1e3 * (metrics ->> '$.gathering') AS gathering,
       iif(e.ci_low IS NULL, printf('%.4g ms', 1e3 * (metrics ->> '$.exposed_forward')),
           printf('%.1f to %.1f ms (95 %% interval)', 1e3 * e.ci_low, 1e3 * e.ci_high)) AS exposed_forward,
       coalesce((SELECT printf(' %d', count(*))
                   FROM span s
                  WHERE s.attempt_id = v.attempt_id AND s.rank = 0 AND s.track = 'gather'
                 HAVING count(*) > 0), '') AS units,
       iif(e.ci_low IS NULL OR f.ci_low IS NULL,
           printf('%.2g', 100 * (metrics ->> '$.exposed_forward') / (metrics ->> '$.forward')),
           printf('%.1g to %.1g', 100 * e.ci_low / f.ci_high, 100 * e.ci_high / f.ci_low)) AS share,
       1e3 * (metrics ->> '$.exposed_backward') AS exposed_backward,
       CASE WHEN 100 * e.ci_high / f.ci_low < 5
              THEN iif((metrics ->> '$.exposed_backward') < 0.05 * (metrics ->> '$.backward'),
                       'Nearly all arrive in time, forward and backward',
                       'Nearly all arrive in time in forward, but not in backward')
            WHEN 100 * e.ci_low / f.ci_high > 5 THEN 'So they do not arrive in time in forward (over 5 % is waiting)'
            ELSE 'Whether they arrive in time in forward cannot be told from these samples' END AS verdict,
       -- By layer: the two that wait longest, and what no other reaches, rounded up to one digit.
       coalesce((SELECT printf(' In the last step the longest waits are %.2g ms for `%s` and %.2g for `%s`; no other '
                               || 'reaches %.4g.', max(iif(place = 1, ms, NULL)), max(iif(place = 1, name, NULL)),
                               max(iif(place = 2, ms, NULL)), max(iif(place = 2, name, NULL)),
                               max(iif(place = 3, (floor(ms / digit) + 1) * digit, NULL)))
                   FROM (SELECT 1e-6 * (end_ns - start_ns) AS ms,
                                pow(10, floor(log10(1e-6 * max(end_ns - start_ns, 1)))) AS digit,
                                replace(name, '.weight', '') AS name,
                                row_number() OVER (ORDER BY end_ns - start_ns DESC) AS place
                           FROM span s WHERE s.attempt_id = v.attempt_id AND s.rank = 0 AND s.track = 'wait')
                 HAVING max(place) > 2), '') AS longest,
       CASE WHEN metrics ->> '$.gathering' < metrics ->> '$.forward'
              THEN printf('Each starts up to two units ahead, '
                          || 'and together they take less time than forward alone (%.3g ms).',
                          1e3 * (metrics ->> '$.forward'))
            ELSE 'Gathering takes longer than computing, so that starting two units ahead cannot hide it.' END AS why,
       run_uid
  FROM v_measured v
  LEFT JOIN metric e ON e.attempt_id = v.attempt_id AND e.name = 'exposed_forward' AND e.rank = -1
  LEFT JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forward' AND f.rank = -1
 WHERE experiment = ?1 AND is_good AND world_size > 1 AND metrics ->> '$.forward' IS NOT NULL
 ORDER BY model, batch, context, "precision", ranks, row_order, granularity DESC, travelling;
