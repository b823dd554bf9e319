import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { StackRow, stackColumns, stackJoins } from '../stacks/stack-repository.ts';
import { movedVersion, movedVersionColumns } from './moved-version.ts';

const VersionRow = Type.Object({
  ...movedVersion,
  /** The version's entry in the history from which it was imported. */
  entry: Nullable(Type.String()),
  hasState: Type.Boolean(),
});
/** An ended update that has a version. */
export type ExportedVersionRow = Row<typeof VersionRow>;
const EntryRow = Type.Pick(VersionRow, ['stackVersion', 'entry', 'endedAt']);
/** These fields determine the name of a version in a history. */
export type EntryRow = Row<typeof EntryRow>;

const FirstRow = Type.Object({ stackVersion: Nullable(Type.Integer()) });
const ConfigRow = Type.Object({ config: Type.String() });

const maxVersion = 2 ** 31 - 1;

/** All data of an export except the states. */
export function createExportedStackRepository(db: Queryable) {
  return {
    /** Sorts by project and name. */
    listStacks: (organizationId: string, after: { project: string; stack: string }, limit: number) =>
      db.any(sql.rows(StackRow)`
        /* exportedStacks.listStacks */
        select ${stackColumns} from ${stackJoins}
        where p.organization_id = ${organizationId} and s.deleted_at is null and (p.name, s.name) > (${after.project}, ${after.stack})
        order by p.name, s.name limit ${limit}`),

    /** Finds the first of the newest `count` versions. */
    findFirstVersion: async (stackId: string, count: number): Promise<number | null> => {
      const row = await db.one(sql.rows(FirstRow)`
        /* exportedStacks.findFirstVersion */
        select min(stack_version)::integer as "stackVersion" from (
          select stack_version from updates
          where stack_id = ${stackId} and stack_version is not null and status in ('succeeded', 'failed', 'cancelled')
          order by stack_version desc limit ${count}) newest`);
      return row.stackVersion;
    },

    /** Lists versions oldest first, with or without their states. */
    listEntries: (stackId: string, { from, before }: { from: number; before: number }, limit: number) =>
      db.any(sql.rows(EntryRow)`
        /* exportedStacks.listEntries */
        select u.stack_version as "stackVersion", i.entry, coalesce(u.ended_at, u.created_at) as "endedAt"
        from updates u left join imported_versions i on i.update_id = u.id
        where u.stack_id = ${stackId} and u.stack_version >= ${from} and u.stack_version < ${before}
          and u.status in ('succeeded', 'failed', 'cancelled')
        order by u.stack_version limit ${limit}`),

    /** Lists versions oldest first. */
    listVersions: (
      stackId: string,
      { from, to = maxVersion }: { from: number; to?: number | undefined },
      limit: number,
    ) =>
      db.any(sql.rows(VersionRow)`
        /* exportedStacks.listVersions */
        select ${movedVersionColumns}, i.entry, u.state_deleted_at is null as "hasState"
        from updates u left join imported_versions i on i.update_id = u.id
        where u.stack_id = ${stackId} and u.stack_version between ${from} and ${to} and u.status in ('succeeded', 'failed', 'cancelled')
        order by u.stack_version limit ${limit}`),

    /** Finds the configuration of the newest version up to `to` that had one. Ignores previews, which need less permission. */
    findNewestConfig: async (stackId: string, to: number = maxVersion): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(ConfigRow)`
        /* exportedStacks.findNewestConfig */
        select config from updates
        where stack_id = ${stackId} and stack_version <= ${to} and status in ('succeeded', 'failed', 'cancelled') and config <> '{}'
        order by stack_version desc limit 1`);
      return row?.config ?? null;
    },
  };
}
