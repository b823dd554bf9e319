import { Type } from 'typebox';
import { type Queryable, sql } from '../db/sql.ts';

/** Webhooks and audit events of a restored database wait until an operator confirms that it has taken over. */
export const mayBeSent = sql.fragment`(select outgoing_held_since is null from installation)`;

export function createHeldOutgoingRepository(db: Queryable) {
  return {
    hold: () =>
      db.query(sql.nothing`/* heldOutgoing.hold */ update installation set outgoing_held_since = clock_timestamp()`),

    isHeld: () => db.exists(sql.rows(Type.Object({}))`/* heldOutgoing.isHeld */ select 1 where not ${mayBeSent}`),

    release: () =>
      db.query(sql.nothing`
        /* heldOutgoing.release */ update installation set outgoing_held_since = null where outgoing_held_since is not null`),
  };
}
