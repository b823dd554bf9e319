import { Type } from 'typebox';
import { movedVersion, movedVersionColumns } from '../../shared/diy/moved-version.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';

const EntryRow = Type.Object({ entry: Type.String(), stackVersion: Type.Integer() });

const VersionRow = Type.Object({
  entry: Type.String(),
  ...movedVersion,
  sha256: Nullable(Type.String()),
});
/** An imported version as it is stored. */
export type ImportedVersionRow = Row<typeof VersionRow>;

const HeadRow = Type.Object({ sha256: Type.String() });

/** An update of another backend, with the version that it becomes. */
export interface ImportedUpdate {
  readonly id: string;
  readonly stackId: string;
  readonly entry: string;
  readonly kind: string;
  readonly status: 'succeeded' | 'failed';
  readonly stackVersion: number;
  readonly message: string;
  readonly environment: string;
  readonly config: string;
  readonly resourceChanges: string;
  readonly ciRun: string | null;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly baseCheckpointId: string | null;
}

/** Versions that an import has brought in. */
export function createImportedVersionRepository(db: Queryable) {
  return {
    /** The imported versions of a stack, oldest first. */
    listEntries: (stackId: string) =>
      db.any(sql.rows(EntryRow)`
        /* importedVersions.listEntries */
        select i.entry, u.stack_version as "stackVersion" from updates u join imported_versions i on i.update_id = u.id
        where u.stack_id = ${stackId} order by u.stack_version`),

    /** A page of the imported versions of a stack with all that was imported, oldest first. */
    list: (stackId: string, afterVersion: number, limit: number) =>
      db.any(sql.rows(VersionRow)`
        /* importedVersions.list */
        select i.entry, ${movedVersionColumns}, encode(c.sha256, 'hex') as sha256
        from updates u join imported_versions i on i.update_id = u.id left join checkpoints c on c.id = u.checkpoint_id
        where u.stack_id = ${stackId} and u.stack_version > ${afterVersion} order by u.stack_version limit ${limit}`),

    /** SHA-256 of the newest state, in hex; null if the stack has none. */
    findHeadHash: async (stackId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(HeadRow)`
        /* importedVersions.findHeadHash */
        select encode(c.sha256, 'hex') as sha256 from stacks s join checkpoints c on c.id = s.checkpoint_id
        where s.id = ${stackId}`);
      return row?.sha256 ?? null;
    },

    /** Inserts an ended update without its state, and notes where it comes from. Its events are not known. */
    insert: (update: ImportedUpdate) =>
      db.query(sql.nothing`
        /* importedVersions.insert */
        with inserted as (
          insert into updates (id, stack_id, kind, exclusive, status, stack_version, base_stack_version, message, environment, config,
                               resource_changes, ci_run, created_at, started_at, ended_at, expires_at, base_checkpoint_id, checkpoint_id,
                               events_archived)
          select ${update.id}::uuid, ${update.stackId}::uuid, ${update.kind}, true, ${update.status}, ${update.stackVersion}::integer,
            ${update.stackVersion - 1}::integer, ${update.message}, ${update.environment}, ${update.config}, ${update.resourceChanges},
            ${update.ciRun}::text, t.started, t.started, t.ended, t.ended, ${update.baseCheckpointId}::uuid,
            ${update.baseCheckpointId}::uuid, true
          from (values (${update.startedAt.toISOString()}::timestamptz, ${update.endedAt.toISOString()}::timestamptz)) as t (started, ended)
          returning id
        )
        insert into imported_versions (update_id, entry) select id, ${update.entry} from inserted`),
  };
}
