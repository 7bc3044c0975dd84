-- One row an attempt: what made it, and the state of the machine while it was made. Clocks in MHz, as measured within
-- the samples (clock_mhz) and as the driver told them behind the warm-up and behind the last sample; held_down: what
-- NVML says held them (its bits, 0: nothing). Of the CPU: the load average at the end, the share of its time that
-- others took, its governor. NULL where nobody told.
CREATE VIEW v_provenance AS
SELECT t.attempt_id,
       t.attempt_uid,
       t.run_uid,
       t.experiment,
       t.case_text,
       t.implementation,
       t.status,
       t.started_at,
       t.git_sha,
       t.git_dirty,
       nullif(b.facts ->> '$.git_diff', '')                AS git_diff,
       t.implementation_digest,
       t.facts ->> '$.code.digest'                         AS kernel_code,
       t.facts ->> '$.code.why'                            AS no_kernel_code,
       (SELECT group_concat((k.value ->> '$.launches') || ' x ' || (k.value ->> '$.name'), '; ')
          FROM json_each(t.facts, '$.code.kernels') k)     AS kernels,
       coalesce(t.gpu_name, t.cpu_model)                   AS processor,
       coalesce(t.facts ->> '$.gpu.driver', e.facts ->> '$.cuda.driver') AS driver,
       t.facts ->> '$.gpu.runtime'                         AS runtime,
       t.facts ->> '$.clock_mhz'                           AS clock_mhz,
       t.facts ->> '$.clock_settled'                       AS clock_settled,
       t.facts ->> '$.device_state[0].sm_mhz'              AS sm_mhz_before,
       t.facts ->> '$.device_state[1].sm_mhz'              AS sm_mhz_after,
       t.facts ->> '$.device_state[0].celsius'             AS celsius_before,
       t.facts ->> '$.device_state[1].celsius'             AS celsius_after,
       t.facts ->> '$.device_state[0].watts'               AS watts_before,
       t.facts ->> '$.device_state[1].watts'               AS watts_after,
       t.facts ->> '$.device_state[0].slowed_by'           AS held_down_before,
       t.facts ->> '$.device_state[1].slowed_by'           AS held_down_after,
       t.facts ->> '$.load_average'                        AS load_average,
       t.facts ->> '$.steal_share'                         AS steal_share,
       e.facts ->> '$.cpu.governor'                        AS governor,
       t.facts ->> '$.slow_clock_samples'                  AS slow_clock,
       t.facts ->> '$.power_capped_samples'                AS power_capped,
       t.facts ->> '$.hot_samples'                         AS hot,
       t.facts ->> '$.hardware_slowdown_samples'           AS hardware_slowdown,
       t.facts ->> '$.noise'                               AS noise
  FROM v_attempt t
  JOIN run r           ON r.id = t.run_id
  JOIN v_build b       ON b.build_id = r.build_id
  JOIN v_environment e ON e.environment_id = r.environment_id;
