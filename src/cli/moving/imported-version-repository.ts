import { Type } from 'typebox';
import type { StoredStatus } from '../../shared/diy/history-info.ts';
import { movedVersion, movedVersionColumns } from '../../shared/diy/moved-version.ts';
import type { EngineEventText } from '../../shared/events/event-repository.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { inBatches } from '../../shared/platform/db/text-chunks.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import { cliConfig, cliEnvironment } from '../../shared/updates/cli-texts.ts';
import type { FormerName } from './moving-source.ts';

const EntryRow = Type.Object({ entry: Type.String(), stackVersion: Type.Integer() });

const VersionRow = Type.Object({
  id: Type.String(),
  entry: Type.String(),
  ...movedVersion,
  sha256: Nullable(Type.String()),
});
export type ImportedVersionRow = Row<typeof VersionRow>;

const NameRow = Type.Object({ project: Type.String(), stack: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const HeadRow = Type.Object({ sha256: Type.String() });

/** An update as it is stored here. */
export interface ImportedUpdate {
  readonly id: string;
  readonly stackId: string;
  readonly entry: string;
  readonly kind: string;
  readonly status: StoredStatus;
  readonly stackVersion: number;
  readonly message: string;
  readonly environment: string;
  readonly config: string;
  readonly resourceChanges: string;
  readonly ciRun: string | null;
  /** A user of this server. */
  readonly requestedBy: string | null;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly baseCheckpointId: string | null;
  readonly hasEvents: boolean;
}

/** The rows also have the entries of the sources. */
export function createImportedVersionRepository(db: Queryable) {
  return {
    /** The imported versions of a stack, oldest first. */
    listEntries: (stackId: string) =>
      db.any(sql.rows(EntryRow)`
        /* importedVersions.listEntries */
        select i.entry, u.stack_version as "stackVersion" from updates u join imported_versions i on i.update_id = u.id
        where u.stack_id = ${stackId} order by u.stack_version`),

    /** The rows have all imported columns, oldest first. */
    list: (stackId: string, afterVersion: number, limit: number) =>
      db.any(sql.rows(VersionRow)`
        /* importedVersions.list */
        select u.id, i.entry, ${movedVersionColumns}, encode(c.sha256, 'hex') as sha256
        from updates u join imported_versions i on i.update_id = u.id left join checkpoints c on c.id = u.checkpoint_id
        where u.stack_id = ${stackId} and u.stack_version > ${afterVersion} order by u.stack_version limit ${limit}`),

    /**
     * A stack of the organization that has one of these entries and, besides, one of these names, now or before a rename, or one of these
     * updates of the source; null if there is none.
     */
    findImported: (
      organization: string,
      {
        entries,
        names,
        updateIds,
      }: {
        readonly entries: readonly string[];
        readonly names: readonly FormerName[];
        readonly updateIds: readonly string[];
      },
    ) =>
      db.maybeOne(sql.rows(NameRow)`
        /* importedVersions.findImported */
        with own as (
          select o.id, n.project, n.stack from organizations o, unnest(${sql.array(
            names.map(({ project }) => project),
            'text',
          )}, ${sql.array(
            names.map(({ stack }) => stack),
            'text',
          )}) as n (project, stack) where o.name = ${organization}
        ),
        named as (
          select s.id from own n join projects p on p.organization_id = n.id and p.name = n.project
            join stacks s on s.project_id = p.id and s.name = n.stack
          union
          select f.stack_id from own n join former_stack_names f
            on f.organization_id = n.id and f.project_name = n.project and f.stack_name = n.stack
          union
          select u.stack_id from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
            join organizations o on o.id = p.organization_id
          where u.id = any (${sql.array([...updateIds], 'uuid')}) and o.name = ${organization}
        )
        select p.name as project, s.name as stack
        from named join stacks s on s.id = named.id join projects p on p.id = s.project_id
        where s.deleted_at is null and exists (
          select 1 from updates u join imported_versions i on i.update_id = u.id
          where u.stack_id = s.id and i.entry <> '' and i.entry = any (${sql.array([...entries], 'text')}))
        order by p.name, s.name limit 1`),

    /** The ids, among these, that updates already have. */
    listTaken: async (ids: readonly string[]): Promise<ReadonlySet<string>> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* importedVersions.listTaken */ select id from updates where id = any (${sql.array([...ids], 'uuid')})`);
      return new Set(rows.map(({ id }) => id));
    },

    /** Notes that an import has created a stack, or brought its state from before its first version. */
    markBegun: (stackId: string) =>
      db.query(sql.nothing`
        /* importedVersions.markBegun */ update stacks set begun_by_import = true where id = ${stackId}`),

    isBegun: (stackId: string) =>
      db.exists(sql.rows(IdRow)`
        /* importedVersions.isBegun */ select id from stacks where id = ${stackId} and (begun_by_import or import_unfinished)`),

    findUser: async (login: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* importedVersions.findUser */ select id from users where login = ${login}`);
      return row?.id ?? null;
    },

    /** SHA-256 of the newest state, in hex; null if the stack has none. */
    findHeadHash: async (stackId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(HeadRow)`
        /* importedVersions.findHeadHash */
        select encode(c.sha256, 'hex') as sha256 from stacks s join checkpoints c on c.id = s.checkpoint_id
        where s.id = ${stackId}`);
      return row?.sha256 ?? null;
    },

    /** An ended update without its state and its events. Notes its origin. */
    insert: (update: ImportedUpdate) =>
      db.query(sql.nothing`
        /* importedVersions.insert */
        with inserted as (
          insert into updates (id, stack_id, kind, exclusive, status, stack_version, base_stack_version, message, environment, config,
                               cli_environment, cli_config, resource_changes, ci_run, requested_by, end_reason, created_at, started_at, ended_at, expires_at, base_checkpoint_id, checkpoint_id,
                               events_archived)
          select ${update.id}::uuid, ${update.stackId}::uuid, ${update.kind}, true, ${update.status}, ${update.stackVersion}::integer,
            ${update.stackVersion - 1}::integer, ${update.message}, ${update.environment}, ${update.config},
            ${cliEnvironment(JSON.parse(update.environment))}::text, ${cliConfig(JSON.parse(update.config))}::text, ${update.resourceChanges},
            ${update.ciRun}::text, ${update.requestedBy}::uuid, case when ${update.status} = 'cancelled' then 'cancelled' end, t.started, t.started, t.ended, t.ended, ${update.baseCheckpointId}::uuid,
            ${update.baseCheckpointId}::uuid, ${!update.hasEvents}
          from (values (${update.startedAt.toISOString()}::timestamptz, ${update.endedAt.toISOString()}::timestamptz)) as t (started, ended)
          returning id
        )
        insert into imported_versions (update_id, entry) select id, ${update.entry} from inserted`),

    /** Adds events of an ended update that has no events with these sequence numbers. */
    insertEvents: async (updateId: string, events: readonly EngineEventText[]): Promise<void> => {
      for (const batch of inBatches(events, ({ text }) => text.length)) {
        const column = (of: (event: EngineEventText) => string | number | null, type: 'int8' | 'text') =>
          sql.array(batch.map(of), type);
        await db.query(sql.nothing`
          /* importedVersions.insertEvents */
          insert into engine_events (update_id, sequence, event, type, urn)
          select ${updateId}::uuid, e.sequence, e.event, e.type, e.urn
          from unnest(${column((event) => event.sequence, 'int8')}, ${column((event) => event.text, 'text')},
            ${column((event) => event.type, 'text')}, ${column((event) => event.urn, 'text')}) as e (sequence, event, type, urn)`);
      }
    },
  };
}
