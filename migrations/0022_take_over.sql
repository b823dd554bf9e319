-- Since when a restored database sends no webhooks and audit events: the one from which it was restored may still send them.
alter table installation add column outgoing_held_since timestamptz;
