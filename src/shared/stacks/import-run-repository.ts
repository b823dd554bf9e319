import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';

export type ImportRunKind = 'import' | 'verify' | 'rollback';

/** The oldest runs of an organization are deleted. */
const maxImportRuns = 200;

const IdRow = Type.Object({ id: Type.String() });
const RunRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  kind: Type.Unsafe<ImportRunKind>(Type.String()),
  source: Type.String(),
  by: Type.String(),
  startedAt: Timestamp,
  endedAt: Nullable(Timestamp),
  /** Stacks that were compared or partly imported or deleted; among them, stacks with notes, and in quarantine. */
  stacks: Type.Integer(),
  versions: Type.Integer(),
  previews: Type.Integer(),
  noted: Type.Integer(),
  quarantined: Type.Integer(),
  /** From the newest comparison with the source that began after the end of an import. All null if there was none. */
  verifiedAt: Nullable(Timestamp),
  verifiedStacks: Nullable(Type.Integer()),
  differentStacks: Nullable(Type.Integer()),
});
export type ImportRunRow = Row<typeof RunRow>;

const StackRow = Type.Object({
  name: Type.String(),
  project: Nullable(Type.String()),
  stack: Type.String(),
  versions: Type.Integer(),
  previews: Type.Integer(),
  secretsProvider: Nullable(Type.String()),
  quarantine: Nullable(Type.String()),
  /** JSON list of texts. */
  notes: Type.String(),
  isHere: Type.Boolean(),
});

export interface ImportRunStack {
  readonly name: string;
  readonly project: string | null;
  readonly stack: string;
  readonly versions: number;
  readonly previews: number;
  readonly secretsProvider: string | null;
  readonly quarantine: string | null;
  readonly notes: readonly string[];
}

/** Tables `import_runs` and `import_run_stacks`. */
export function createImportRunRepository(db: Queryable) {
  const counts = sql.fragment`
    select count(*) filter (where t.versions + t.previews > 0)::integer as stacks, coalesce(sum(t.versions), 0)::integer as versions,
      coalesce(sum(t.previews), 0)::integer as previews, count(*) filter (where t.has_notes)::integer as noted,
      count(t.quarantine)::integer as quarantined, count(*)::integer as all
    from import_run_stacks t`;
  const listed = (where: ReturnType<typeof sql.fragment>, limit: number) => sql.fragment`
    select r.id, r.number, r.kind, r.source, r.run_by as by, r.started_at as "startedAt", r.ended_at as "endedAt",
      case r.kind when 'verify' then c.all else c.stacks end as stacks, c.versions, c.previews, c.noted, c.quarantined,
      v.ended_at as "verifiedAt", w.all as "verifiedStacks", w.noted as "differentStacks"
    from (
      select i.* from import_runs i join organizations o on o.id = i.organization_id where ${where} order by i.number desc limit ${limit}) r
    cross join lateral (${counts} where t.run_id = r.id) c
    left join lateral (
      select n.id, n.ended_at from import_runs n
      where r.kind = 'import' and n.organization_id = r.organization_id and n.source = r.source and n.kind = 'verify'
        and n.ended_at is not null and n.started_at > r.ended_at
      order by n.number desc limit 1) v on true
    left join lateral (${counts} where t.run_id = v.id) w on v.id is not null
    order by r.number desc`;
  return {
    /** Also deletes the oldest runs of the organization. */
    begin: async (
      organizationId: string,
      { by, kind, source }: { readonly kind: ImportRunKind; readonly source: string; readonly by: string },
    ): Promise<string> => {
      const { id } = await db.one(sql.rows(IdRow)`
        /* importRuns.begin */
        with old as (
          delete from import_runs where id = any (array(
            select id from import_runs where organization_id = ${organizationId} order by number desc offset ${maxImportRuns - 1}))
        )
        insert into import_runs (organization_id, kind, source, run_by) values (${organizationId}, ${kind}, ${source}, ${by}) returning id`);
      return id;
    },

    noteStack: (runId: string, stack: ImportRunStack) =>
      db.query(sql.nothing`
        /* importRuns.noteStack */
        insert into import_run_stacks (run_id, name, project, stack, versions, previews, secrets_provider, quarantine, notes)
        values (${runId}, ${stack.name}, ${stack.project}, ${stack.stack}, ${stack.versions}, ${stack.previews},
          ${stack.secretsProvider}, ${stack.quarantine}, ${JSON.stringify(stack.notes)})
        on conflict do nothing`),

    end: (runId: string) =>
      db.query(
        sql.nothing`/* importRuns.end */ update import_runs set ended_at = clock_timestamp() where id = ${runId}`,
      ),

    /** Newest first. */
    list: (organization: string, before: number | null, limit: number) =>
      db.any(sql.rows(RunRow)`
        /* importRuns.list */
        ${listed(sql.fragment`o.name = ${organization} and (${before}::bigint is null or i.number < ${before}::bigint)`, limit)}`),

    find: (organization: string, id: string) =>
      db.maybeOne(sql.rows(RunRow)`
        /* importRuns.find */ ${listed(sql.fragment`o.name = ${organization} and i.id = ${id}::uuid`, 1)}`),

    /** Ordered by name. */
    listStacks: (organization: string, runId: string, after: string, limit: number) =>
      db.any(sql.rows(StackRow)`
        /* importRuns.listStacks */
        select t.name, t.project, t.stack, t.versions, t.previews, t.secrets_provider as "secretsProvider", t.quarantine, t.notes,
          exists (
            select 1 from projects p join stacks s on s.project_id = p.id and s.name = t.stack and s.deleted_at is null
            where p.organization_id = r.organization_id and p.name = t.project) as "isHere"
        from import_runs r join organizations o on o.id = r.organization_id join import_run_stacks t on t.run_id = r.id
        where o.name = ${organization} and r.id = ${runId}::uuid and t.name > ${after} order by t.name limit ${limit}`),
  };
}
