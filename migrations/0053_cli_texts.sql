-- The environment and the configuration in the form that the CLI can read, where that differs from what the client has sent; null: it
-- does not.
alter table updates add column cli_environment text, add column cli_config text;
