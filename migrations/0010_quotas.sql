-- Up Migration

-- Limits that override the settings for an organization. Null means the value of the settings, 0 means no limit.
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

-- Last measured storage use of organizations with a limit on stored bytes.
create table organization_usage (
  organization_id uuid primary key references organizations (id) on delete cascade,
  kept_bytes bigint not null,
  measured_at timestamptz not null default now(),
  -- Duration of the measurement. Slow ones are repeated less often.
  took_ms integer not null default 0
);
