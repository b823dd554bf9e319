-- Up Migration

-- Limits of an organization that differ from the settings: null is as the settings have it, 0 is no limit.
create table organization_quotas (
  organization_id uuid primary key references organizations (id) on delete cascade,
  stacks bigint,
  kept_bytes bigint,
  in_flight_bytes bigint,
  updates bigint,
  requests_per_second bigint,
  constraint organization_quotas_check
    check (least(stacks, kept_bytes, in_flight_bytes, updates, requests_per_second) >= 0)
);

-- What an organization with a limit on bytes keeps, as it was measured last.
create table organization_usage (
  organization_id uuid primary key references organizations (id) on delete cascade,
  kept_bytes bigint not null,
  measured_at timestamptz not null default now(),
  -- How long that took: what takes long is measured less often.
  took_ms integer not null default 0
);
