-- Everybody behind the approval when it was given: since then, its token may have been rotated or deleted. Null: not given, or before this migration.
alter table update_approvals add column approved_people uuid[];
