-- A row a measured training step whose optimizer's state may be divided among ranks (optimizer_state_sharding and its
-- accounting), whatever its end: v_measured and, apart, what its case says. `sharding`: whose the state is, `none`:
-- everybody's. `updates`: when slices are updated, at_end or in_turn, which `turn` says in words. `wire`: what
-- gradients are rounded to before they travel, which `travelling` says in words; own: as they lie.
-- `bucket_mb` is NULL of cases from before there was a limit, which was 25. `point` is all else that cases have in
-- common which differ in the way of dividing alone.
CREATE VIEW v_sharded_state AS
SELECT t.*, t.params ->> '$.model' AS model, t.params ->> '$.batch' AS batch, t.params ->> '$.context' AS context,
       t.params ->> '$.precision' AS "precision", t.params ->> '$.sharding' AS sharding,
       coalesce(t.params ->> '$.updates', 'at_end') AS updates,
       iif(t.params ->> '$.updates' = 'in_turn', 'in turn', 'at the end') AS turn,
       coalesce(t.params ->> '$.wire', 'own') AS wire,
       coalesce('in ' || nullif(t.params ->> '$.wire', 'own'), 'as they lie') AS travelling,
       t.params ->> '$.bucket_mb' AS bucket_mb,
       t.world_size AS ranks, json_remove(t.params, '$.sharding', '$.updates') AS point
  FROM v_measured t
 WHERE t.experiment IN ('optimizer_state_sharding', 'optimizer_state_sharding_accounting');
