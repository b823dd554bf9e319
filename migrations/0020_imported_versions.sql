-- The versions that `holdfast import` has brought in, so that it goes on where it was interrupted.

create table imported_versions (
  update_id uuid primary key references updates (id) on delete cascade,
  -- The entry in the history of the source; empty for a state of the source that its history does not have.
  entry text not null
);
