import { Type } from 'typebox';
import { movedVersion, movedVersionColumns } from '../../../shared/diy/moved-version.ts';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { Nullable } from '../../../shared/platform/schema/standard-schema.ts';
import { isPreview } from '../../../shared/updates/preview-fragments.ts';
import type { Remainder } from './archive-layout.ts';

const UpdateRow = Type.Object({
  ...movedVersion,
  id: Type.String(),
  number: Type.Integer(),
  /** Null for a preview. */
  stackVersion: Nullable(Type.Integer()),
  baseVersion: Type.Integer(),
  endReason: Nullable(Type.String()),
  requestedBy: Nullable(Type.String()),
  /** Whether retention has deleted the state and the events. */
  ...{ isStateDeleted: Type.Boolean(), areEventsDeleted: Type.Boolean() },
});
export type ArchivedUpdateRow = Row<typeof UpdateRow>;

const NameRow = Type.Object({ project: Type.String(), stack: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });
const RemainderRow = Type.Object({ kind: Type.String(), names: Type.Array(Type.String()) });

/** The rows contain no states and no events. */
export function createArchivedStackRepository(db: Queryable) {
  const columns = sql.fragment`
    ${movedVersionColumns}, u.id, u.number, u.base_stack_version as "baseVersion", u.end_reason as "endReason", a.login as "requestedBy",
    u.state_deleted_at is not null as "isStateDeleted", u.events_deleted_at is not null as "areEventsDeleted"`;
  return {
    /** A page of ended updates with a version above this one, oldest first. */
    listVersions: (stackId: string, aboveVersion: number, limit: number) =>
      db.any(sql.rows(UpdateRow)`
        /* archivedStacks.listVersions */
        select ${columns} from updates u left join users a on a.id = u.requested_by
        where u.stack_id = ${stackId} and u.stack_version > ${aboveVersion} and u.status in ('succeeded', 'failed', 'cancelled')
        order by u.stack_version limit ${limit}`),

    /** A page of ended previews, oldest first. */
    listPreviews: (stackId: string, afterNumber: number, limit: number) =>
      db.any(sql.rows(UpdateRow)`
        /* archivedStacks.listPreviews */
        select ${columns} from updates u left join users a on a.id = u.requested_by
        where u.stack_id = ${stackId} and u.number > ${afterNumber} and ${isPreview}
          and u.status in ('succeeded', 'failed', 'cancelled')
        order by u.number limit ${limit}`),

    /** Returns null if the version does not exist. */
    findVersion: async (stackId: string, stackVersion: number): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* archivedStacks.findVersion */ select id from updates where stack_id = ${stackId} and stack_version = ${stackVersion}`);
      return row?.id ?? null;
    },

    /** Counts only ended updates with a version. */
    countVersions: async (stackIds: readonly string[]): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* archivedStacks.countVersions */
        select count(*)::integer as count from updates u
        where u.stack_id = any (${sql.array([...stackIds], 'uuid')}) and u.stack_version is not null
          and u.status in ('succeeded', 'failed', 'cancelled')`);
      return row.count;
    },

    listFormerNames: (stackId: string) =>
      db.any(sql.rows(NameRow)`
        /* archivedStacks.listFormerNames */
        select project_name as project, stack_name as stack from former_stack_names where stack_id = ${stackId} order by 1, 2`),

    findInstallation: async (): Promise<string> => {
      const row = await db.one(sql.rows(IdRow)`/* archivedStacks.findInstallation */ select id from installation`);
      return row.id;
    },

    /** The names of other objects, by kind. */
    listRemainder: async (organizationId: string): Promise<Remainder> => {
      const rows = await db.any(sql.rows(RemainderRow)`
        /* archivedStacks.listRemainder */
        select kind, array_agg(distinct name order by name) as names from (
          select 'members' as kind, u.login as name from memberships m join users u on u.id = m.user_id
            where m.organization_id = ${organizationId}
          union all select 'teams', name from teams where organization_id = ${organizationId}
          union all select 'roles', name from roles where organization_id = ${organizationId}
          union all select 'rules', kind from update_rules where organization_id = ${organizationId}
          union all select 'webhooks', name from webhooks where organization_id = ${organizationId}
          union all select 'policy packs', k.name from policy_packs k where k.organization_id = ${organizationId}
            and exists (select 1 from policy_pack_versions v where v.pack_id = k.id and v.removed_at is null)
          union all select 'issuers for CI', name from trusted_issuers where organization_id = ${organizationId}
          union all select 'legal holds', p.name || '/' || s.name || case when s.deleted_at is null then '' else ' (deleted, with its data)' end
            from stacks s join projects p on p.id = s.project_id where p.organization_id = ${organizationId} and s.held_at is not null) everything
        group by kind order by kind`);
      return Object.fromEntries(rows.map(({ kind, names }) => [kind, names]));
    },
  };
}
