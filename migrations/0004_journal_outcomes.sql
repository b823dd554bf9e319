-- Up Migration

alter table journals
  -- What the fold has left out without failing: entries of kinds that the release which folded does not know.
  add column fold_warning text,
  -- When an operator took the state as it is, in spite of fold_error or fold_warning.
  add column accepted_at timestamptz,
  -- When the fold of the ended update was read back; its entries are kept for a while from then on.
  add column folded_at timestamptz,
  -- Who folds the journal at present, and until when he may be thought alive.
  add column fold_claim uuid,
  add column fold_claimed_until timestamptz;

-- The state was left as it was before the update, with no entry of the journal in it.
update journals set folded_entries = 0 where fold_error is not null;

create index journals_unfolded on journals (stack_id) where folded_at is null;
create index journals_faulty on journals (stack_id)
  where accepted_at is null and (fold_error is not null or fold_warning is not null);
create index journals_kept on journals (greatest(folded_at, accepted_at))
  where folded_at is not null and (accepted_at is not null or (fold_error is null and fold_warning is null));
