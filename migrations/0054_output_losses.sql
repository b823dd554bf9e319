-- Up Migration

-- Outputs that an update or a preview has removed, as its events say: of stacks with a rule that cares. Names only, as a JSON list.
create table output_losses (
  update_id uuid primary key references updates (id) on delete cascade,
  names text not null
);
