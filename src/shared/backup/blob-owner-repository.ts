import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

const OwnerRow = Type.Object({
  kind: Type.Union([
    Type.Literal('checkpoint'),
    Type.Literal('chunk'),
    Type.Literal('segment'),
    Type.Literal('archive'),
    Type.Literal('snapshot'),
  ]),
  id: Type.String(),
});

export function createBlobOwnerRepository(db: Queryable) {
  return {
    /** Finds the row whose object consists of the bytes of the blob. */
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
        union all
        select 'snapshot', f.update_id::text from journal_snapshots f where f.blob_key = ${key}
        limit 1`),
  };
}
