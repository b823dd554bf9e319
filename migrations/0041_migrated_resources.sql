-- The keys of the resources that the update's journal has inserted into its state by migrations.
alter table update_limits add column migrated_keys text[] not null default '{}';
