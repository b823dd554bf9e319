import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';

const NonceRow = Type.Object({
  installation: Type.String(),
  nonce: Nullable(Type.String()),
  before: Nullable(Type.String()),
  isDue: Type.Boolean(),
});

/** The blob store recognizes its database by a nonce. */
export function createStoreOwnershipRepository(db: Queryable) {
  return {
    /** `seconds` is the age at which a nonce is due. A negative age means that the clock was set back. */
    read: (seconds: number) =>
      db.one(sql.rows(NonceRow)`
        /* storeOwnership.read */
        select id as installation, store_nonce as nonce, store_nonce_before as before,
          coalesce(extract(epoch from clock_timestamp() - store_nonce_at) not between 0 and ${seconds}, true) as "isDue"
        from installation`),

    /** Returns false if another process has replaced the nonce in the meantime. */
    replace: async (nonce: string | null, next: string): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* storeOwnership.replace */
        update installation set store_nonce = ${next}, store_nonce_before = store_nonce, store_nonce_at = clock_timestamp()
        where store_nonce is not distinct from ${nonce}::uuid`);
      return rowCount > 0;
    },
  };
}
