import { Type } from 'typebox';
import { type Queryable, sql } from '../../../shared/platform/db/sql.ts';

const OwnerRow = Type.Object({
  kind: Type.Union([
    Type.Literal('checkpoint'),
    Type.Literal('chunk'),
    Type.Literal('segment'),
    Type.Literal('archive'),
  ]),
  id: Type.String(),
});

/** What consists of the bytes of a blob. */
export function createBlobOwnerRepository(db: Queryable) {
  return {
    /** Null: nothing with a hash of its own. The snapshot of a journal is a cache. */
    find: (key: string) =>
      db.maybeOne(sql.rows(OwnerRow)`
        /* blobOwners.find */
        select 'checkpoint' as kind, c.id::text as id from checkpoints c where c.blob_key = ${key}
        union all
        select 'chunk', p.id::text from version_chunks p where p.blob_key = ${key}
        union all
        select 'segment', g.id::text from event_segments g where g.blob_key = ${key}
        union all
        select 'archive', v.id::text from policy_pack_versions v where v.blob_key = ${key}
        limit 1`),
  };
}
