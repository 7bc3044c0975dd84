-- A machine as it was, and what of its facts is asked for most.
CREATE VIEW v_environment AS
SELECT id AS environment_id, uid AS environment_uid, comparability_key, facts, facts ->> '$.host.name' AS host,
       facts ->> '$.cpu.model' AS cpu_model, facts ->> '$.gpu[0].name' AS gpu_name
  FROM environment;
