-- Links to imported updates may have the ids that these had where they came from.

create index imported_versions_entry on imported_versions (entry);
