-- A row a case and axis: the value as it is typed and shown. In `params` it is JSON, where a number that may have a
-- fraction keeps one ("0.0").
CREATE VIEW v_param AS
SELECT c.id AS case_id, c.experiment, j.key AS axis,
       CASE j.type WHEN 'real' THEN printf('%.15g', j.value) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
                   ELSE CAST(j.value AS TEXT) END AS value
  FROM case_def c, json_each(c.params) j;
