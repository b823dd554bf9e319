-- Up Migration

alter table journals
  -- What the compaction skipped without failing: entries of kinds that its release did not know.
  add column fold_warning text,
  -- When an operator accepted the state despite fold_error or fold_warning.
  add column accepted_at timestamptz,
  -- When the compacted state of the ended update was verified. Its entries are kept for a grace period from then on.
  add column folded_at timestamptz,
  -- Process that compacts the journal, and until when its claim is valid.
  add column fold_claim uuid,
  add column fold_claimed_until timestamptz;

-- These states were left as before the update and include no journal entries.
update journals set folded_entries = 0 where fold_error is not null;

create index journals_unfolded on journals (stack_id) where folded_at is null;
create index journals_faulty on journals (stack_id)
  where accepted_at is null and (fold_error is not null or fold_warning is not null);
create index journals_kept on journals (greatest(folded_at, accepted_at))
  where folded_at is not null and (accepted_at is not null or (fold_error is null and fold_warning is null));
