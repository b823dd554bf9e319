-- Where the blobs are, once `holdfast blobs` has moved them: one row, or none while the settings name the place. A process reads it again
-- after each upload and before the acknowledgement, so that one with other settings leaves no blob where nobody reads it.
create table blob_places (
  is_only boolean primary key default true,
  -- Raised by each change of the places.
  generation integer not null default 1,
  phase text not null,
  -- Reads begin here. The store has an object places/ID.
  main_id uuid not null,
  main_url text not null,
  -- The place that is being filled, or after the switch the place that was left.
  other_id uuid,
  other_url text,
  -- Uploads to the other place that failed. A verification counts only if there was none meanwhile.
  faults integer not null default 0,
  verified_at timestamptz,
  constraint blob_places_only_check check (is_only),
  constraint blob_places_phase_check check (phase in ('copying', 'switched', 'settled')),
  constraint blob_places_other_check
    check ((phase = 'settled') = (other_id is null) and (other_id is null) = (other_url is null) and other_id <> main_id)
);
