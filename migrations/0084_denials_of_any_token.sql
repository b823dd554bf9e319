-- Up Migration

-- A policy that denies may be about tokens of any kind.
alter table trust_policies
  drop constraint trust_policies_kind_check,
  add constraint trust_policies_kind_check check (
    token_kind in ('personal', 'team', 'organization', 'service') or (token_kind = 'any' and decision = 'deny'));
