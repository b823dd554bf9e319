import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { Bytes } from '../../../shared/platform/schema/standard-schema.ts';

const TokenRow = Type.Object({ hash: Bytes });
const LeaseRow = Type.Object({ updateId: Type.String(), hash: Bytes });
export type LeaseQuestion = Row<typeof LeaseRow>;

export type CredentialRepository = ReturnType<typeof createCredentialRepository>;

/** Filters out tokens or leases that cannot be valid. Does not authenticate anyone. */
export function createCredentialRepository(db: Queryable) {
  return {
    /** The hashes of tokens that are not revoked. */
    listTokens: async (hashes: readonly Buffer[]): Promise<readonly Buffer[]> => {
      const stored = sql.array(hashes, 'bytea');
      const rows = await db.any(sql.rows(TokenRow)`
        /* credentials.listTokens */
        select token_hash as hash from api_tokens
        where token_hash = any(${stored}) and revoked_at is null
        union all
        select previous_hash from api_tokens
        where previous_hash = any(${stored}) and revoked_at is null and previous_until > now()`);
      return rows.map(({ hash }) => hash);
    },

    /** The entries whose update has a lease with that hash, expired or not. */
    listLeases: (leases: readonly LeaseQuestion[]): Promise<readonly LeaseQuestion[]> => {
      const ids = sql.array(
        leases.map(({ updateId }) => updateId),
        'uuid',
      );
      const hashes = sql.array(
        leases.map(({ hash }) => hash),
        'bytea',
      );
      return db.any(sql.rows(LeaseRow)`
        /* credentials.listLeases */
        select u.id as "updateId", u.lease_hash as hash from unnest(${ids}, ${hashes}) as l (id, hash)
        join updates u on u.id = l.id and u.lease_hash = l.hash`);
    },
  };
}
