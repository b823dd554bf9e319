-- A quota limits the last sum in organization_storage.
drop table if exists organization_usage;
