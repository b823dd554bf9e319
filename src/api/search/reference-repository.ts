import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { consumersIn } from '../../shared/updates/rules/consumer-repository.ts';
import type { SearchedOrganization } from './search-repository.ts';

const EdgeRow = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** organization/project/stack. */
  reads: Type.String(),
});
export type ReferenceEdge = Row<typeof EdgeRow>;

const NameRow = Type.Object({ name: Type.String() });

/** References in the index of states. */
export function createReferenceRepository(db: Queryable) {
  const readable = (organization: SearchedOrganization) =>
    organization.facts === null
      ? sql.fragment`true`
      : sql.fragment`effective_permissions(${organization.facts}::jsonb, ${organization.id}::uuid, l.project_name, l.stack_name) & 1 = 1`;
  return {
    /** Sorted by name, for at most `stacks` readable stacks with references. */
    listOfOrganization: (
      organization: SearchedOrganization,
      { limit, stacks }: { readonly limit: number; readonly stacks: number },
    ) =>
      db.any(sql.rows(EdgeRow)`
        /* references.listOfOrganization */
        select ${organization.name} as organization, l.project_name as project, l.stack_name as stack, r.reads
        from (
            select l.* from state_indexes i
              cross join lateral (select * from stack_changes c where c.stack_id = i.stack_id offset 0) l
            where i.referring_in = ${organization.id} and ${readable(organization)}
            order by i.stack_id limit ${stacks}) l
          cross join lateral (
            select distinct reads from stack_resources where stack_id = l.stack_id and reads is not null order by reads) r
        order by l.project_name, l.stack_name, r.reads limit ${limit}`),

    listOfStack: ({ organization, project, stack }: StackRef, limit: number) =>
      db.any(sql.rows(EdgeRow)`
        /* references.listOfStack */
        select distinct o.name as organization, l.project_name as project, l.stack_name as stack, r.reads
        from organizations o join stack_listings l on l.organization_id = o.id and l.tag_name = ''
          join stack_resources r on r.stack_id = l.stack_id
        where o.name = ${organization} and l.project_name = ${project} and l.stack_name = ${stack} and r.reads is not null
        order by r.reads limit ${limit}`),

    /** Readable ones, sorted by name. */
    listConsumers: (organization: SearchedOrganization, name: string, limit: number) =>
      db.any(sql.rows(EdgeRow)`
        /* references.listConsumers */
        select ${organization.name} as organization, l.project_name as project, l.stack_name as stack, ${name}::text as reads
        from ${consumersIn(sql.fragment`${organization.id}`, name)} r
          cross join lateral (select * from stack_changes c where c.stack_id = r.stack_id offset 0) l
        where l.organization_id = ${organization.id} and ${readable(organization)}
        order by 2, 3 limit ${limit}`),

    /** The given stacks that exist and are readable. */
    listReadable: async (
      organization: SearchedOrganization,
      refs: readonly Pick<StackRef, 'project' | 'stack'>[],
    ): Promise<string[]> => {
      const names = refs.map(({ project, stack }) => [project, stack]);
      const rows = await db.any(sql.rows(NameRow)`
        /* references.listReadable */
        select ${organization.name} || '/' || l.project_name || '/' || l.stack_name as name
        from ${sql.unnest(names, ['text', 'text'])} as n (project, stack)
          join stack_listings l on l.organization_id = ${organization.id} and l.tag_name = '' and l.project_name = n.project
            and l.stack_name = n.stack
        where ${readable(organization)}`);
      return rows.map(({ name }) => name);
    },
  };
}
