import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import { cliConfig, cliEnvironment } from '../../shared/updates/cli-texts.ts';
import type { ImportedUpdate } from './imported-version-repository.ts';

const EntryRow = Type.Object({ entry: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const PreviewRow = Type.Object({
  id: Type.String(),
  entry: Type.String(),
  kind: Type.String(),
  status: Type.String(),
  message: Type.String(),
  environment: Type.String(),
  config: Type.String(),
  resourceChanges: Type.String(),
  startedAt: Timestamp,
  endedAt: Timestamp,
  hasEvents: Type.Boolean(),
});
export type ImportedPreviewRow = Row<typeof PreviewRow>;

export function createImportedPreviewRepository(db: Queryable) {
  return {
    /** The list includes deleted previews. */
    listEntries: async (stackId: string): Promise<ReadonlySet<string>> => {
      const rows = await db.any(sql.rows(EntryRow)`
        /* importedPreviews.listEntries */ select entry from imported_previews where stack_id = ${stackId}`);
      return new Set(rows.map(({ entry }) => entry));
    },

    /** A page of the previews that still exist, after an entry. */
    list: (stackId: string, after: string, limit: number) =>
      db.any(sql.rows(PreviewRow)`
        /* importedPreviews.list */
        select u.id, i.entry, u.kind, u.status, u.message, u.environment, u.config, u.resource_changes as "resourceChanges",
          u.started_at as "startedAt", u.ended_at as "endedAt", u.events_deleted_at is null as "hasEvents"
        from imported_previews i join updates u on u.id = i.update_id
        where i.stack_id = ${stackId} and i.entry > ${after} order by i.entry limit ${limit}`),

    /** Inserts an ended preview of `stackVersion`, without its events. Returns false if it was imported before. */
    insert: async (preview: ImportedUpdate): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* importedPreviews.insert */
        with noted as (
          insert into imported_previews (stack_id, entry, update_id) values (${preview.stackId}, ${preview.entry}, ${preview.id})
          on conflict do nothing returning update_id
        )
        insert into updates (id, stack_id, kind, dry_run, exclusive, status, base_stack_version, message, environment, config,
                             cli_environment, cli_config, resource_changes, ci_run, requested_by, end_reason, created_at, started_at, ended_at, expires_at, base_checkpoint_id, checkpoint_id,
                             events_archived)
        select n.update_id, ${preview.stackId}::uuid, ${preview.kind}, true, false, ${preview.status}, ${preview.stackVersion}::integer,
          ${preview.message}, ${preview.environment}, ${preview.config},
          ${cliEnvironment(JSON.parse(preview.environment))}::text, ${cliConfig(JSON.parse(preview.config))}::text, ${preview.resourceChanges}, ${preview.ciRun}::text,
          ${preview.requestedBy}::uuid, case when ${preview.status} = 'cancelled' then 'cancelled' end, t.started,
          t.started, t.ended, t.ended, ${preview.baseCheckpointId}::uuid, ${preview.baseCheckpointId}::uuid, ${!preview.hasEvents}
        from noted n, (values (${preview.startedAt.toISOString()}::timestamptz, ${preview.endedAt.toISOString()}::timestamptz))
          as t (started, ended)
        returning id`);
      return row !== null;
    },
  };
}
