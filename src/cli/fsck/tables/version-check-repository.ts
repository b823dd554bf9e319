import { sql } from '../../../shared/platform/db/sql.ts';
import { idTypes, type TableCheck } from './table-check-repository.ts';

export const versionChecks: readonly TableCheck[] = [
  {
    name: 'versions with their chunks',
    from: sql.fragment`checkpoints c cross join lateral (
      select count(*) as count, coalesce(min(k.place), 1) as first, coalesce(max(k.place), 0) as last, coalesce(sum(p.size_bytes), 0) as bytes,
        coalesce(bool_and(p.stack_id = c.stack_id), true) as "isOwn"
      from checkpoint_chunks k join version_chunks p on p.id = k.chunk_id where k.checkpoint_id = c.id) k`,
    id: sql.fragment`c.id`,
    idType: idTypes.uuid,
    object: sql.fragment`'state ' || c.id || ' of stack ' || c.stack_id`,
    problems: [
      {
        kind: 'chunks',
        when: sql.fragment`case when c.codec = 'chunks'
          then k.count = 0 or k.first <> 1 or k.last <> k.count or k.bytes <> c.size_bytes or not k."isOwn" else k.count > 0 end`,
      },
    ],
  },
  {
    name: 'chunks',
    from: sql.fragment`version_chunks p left join version_chunks b on b.id = p.base_id`,
    id: sql.fragment`p.id`,
    idType: idTypes.bigint,
    object: sql.fragment`'chunk ' || p.id || ' of stack ' || p.stack_id`,
    problems: [
      // After a repair of its base, a chunk is less deep than its row says.
      {
        kind: 'chunk-base',
        when: sql.fragment`p.base_id is not null and (b.stack_id <> p.stack_id or b.depth >= p.depth)`,
      },
      {
        kind: 'chunk-unswept',
        when: sql.fragment`p.unreferenced_since is null and not exists (select 1 from checkpoint_chunks k where k.chunk_id = p.id)
          and not exists (select 1 from version_chunks d where d.base_id = p.id)`,
        repair: (id) => [
          sql.fragment`update version_chunks set unreferenced_since = clock_timestamp() where id = ${id}::bigint and unreferenced_since is null`,
        ],
      },
    ],
  },
];
