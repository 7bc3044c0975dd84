-- The binary that runs were made with, and what of its facts is asked for most.
CREATE VIEW v_build AS
SELECT id AS build_id, uid AS build_uid, facts, facts ->> '$.version' AS version, facts ->> '$.git_sha' AS git_sha,
       facts ->> '$.git_dirty' AS git_dirty
  FROM build;
