import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Bytes, Timestamp } from '../../platform/schema/standard-schema.ts';

const IdRow = Type.Object({ tokenId: Type.String() });
const EarlierRow = Type.Object({ request: Bytes, tokenId: Type.String(), isRecent: Type.Boolean() });
const ReplacedRow = Type.Object({ id: Type.String(), expiresAt: Timestamp });

export interface Exchange {
  /** Identifies the id token. */
  readonly key: Buffer;
  /** Identifies the request and its origin. */
  readonly request: Buffer;
  readonly tokenId: string;
  /** From then on, the id token is not accepted. */
  readonly expiresAt: Date;
}

/** Longer than the longest call. */
const keptMinutes = 10;

/** Shared by all replicas. */
export function createExchangeRepository(db: Queryable) {
  return {
    /** Returns whether this is the first exchange. Waits for one that is being committed. */
    insert: async ({ expiresAt, key, request, tokenId }: Exchange): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* exchanges.insert */
        insert into exchanged_id_tokens (key, request, token_id, expires_at)
        values (${sql.binary(key)}, ${sql.binary(request)}, ${tokenId}, ${expiresAt.toISOString()}::timestamptz)
        on conflict (key) do nothing returning token_id as "tokenId"`);
      return row !== null;
    },

    lock: (key: Buffer, recentSeconds: number) =>
      db.maybeOne(sql.rows(EarlierRow)`
        /* exchanges.lock */
        select request, token_id as "tokenId", exchanged_at > clock_timestamp() - make_interval(secs => ${recentSeconds}) as "isRecent"
        from exchanged_id_tokens where key = ${sql.binary(key)} for update`),

    /** Returns null if the token was used, or is not valid. */
    replaceUnused: (tokenId: string, hash: Buffer) =>
      db.maybeOne(sql.rows(ReplacedRow)`
        /* exchanges.replaceUnused */
        update api_tokens set token_hash = ${sql.binary(hash)}
        where id = ${tokenId} and last_used_at is null and revoked_at is null and expires_at > clock_timestamp()
        returning id, expires_at as "expiresAt"`),

    /** Every call was admitted before its id token expired. */
    deleteExpired: (limit: number) =>
      db.query(sql.nothing`
        /* exchanges.deleteExpired */
        delete from exchanged_id_tokens where key in (
          select key from exchanged_id_tokens where expires_at < now() - make_interval(mins => ${keptMinutes}) order by expires_at limit ${limit})`),
  };
}
