import { type Queryable, sql } from '../../shared/platform/db/sql.ts';
import { isListed, lastOf } from './row-check-repository.ts';

const active = sql.fragment`('not started', 'running')`;

/**
 * Each repair first locks the row that it derives from, in the lock order of all transactions, and changes only rows that are still wrong
 * then. Call in a transaction.
 */
export function createRowRepairRepository(tx: Queryable) {
  const lockStack = (id: string) =>
    tx.query(sql.nothing`/* rowRepairs.lockStack */ select 1 from stacks where id = ${id}::uuid for update`);
  return {
    list: async (stackId: string) => {
      await lockStack(stackId);
      await tx.query(sql.nothing`
        /* rowRepairs.list */
        insert into stack_listings as l (organization_id, tag_name, project_name, stack_name, tag_value, stack_id)
        select p.organization_id, t.tag_name, p.name, s.name, t.tag_value, s.id
        from stacks s join projects p on p.id = s.project_id, listed_tags(s.tags) t
        where s.id = ${stackId}::uuid and s.deleted_at is null
        on conflict (organization_id, tag_name, project_name, stack_name)
          do update set tag_value = excluded.tag_value, stack_id = excluded.stack_id`);
      await tx.query(sql.nothing`
        /* rowRepairs.listLast */
        update stacks s set (resource_count, last_kind, last_status, last_started_at) = (${lastOf})
        where s.id = ${stackId}::uuid and s.deleted_at is null and s.active_update_id is null`);
    },

    /** `id`: the key of the row, as a JSON array. */
    unlist: async (id: string) => {
      const key = (at: number) => sql.fragment`(${id}::json ->> ${at}::integer)`;
      const row = sql.fragment`l.organization_id = ${key(0)}::uuid and l.tag_name = ${key(1)} and l.project_name = ${key(2)}
        and l.stack_name = ${key(3)}`;
      await tx.query(sql.nothing`
        /* rowRepairs.lockListed */
        select 1 from stacks s where s.id in (select l.stack_id from stack_listings l where ${row}) for update`);
      await tx.query(sql.nothing`
        /* rowRepairs.unlist */ delete from stack_listings l where ${row} and not ${isListed}`);
    },

    noteChange: async (stackId: string) => {
      await lockStack(stackId);
      await tx.query(sql.nothing`
        /* rowRepairs.forgetChange */
        delete from stack_changes where stack_id = ${stackId}::uuid
          and not exists (select 1 from stacks where id = ${stackId}::uuid and deleted_at is null)`);
      // The transaction that ends a drift run does not lock the stack. Its result is read after this lock: see migration 79.
      await tx.query(sql.nothing`
        /* rowRepairs.lockChange */ select 1 from stack_changes where stack_id = ${stackId}::uuid for no key update`);
      await tx.query(sql.nothing`
        /* rowRepairs.noteChange */
        insert into stack_changes (stack_id, organization_id, project_name, stack_name, changed_at, trouble, is_drifted)
        select s.id, p.organization_id, p.name, s.name, s.updated_at, stack_trouble(s.id), stack_is_drifted(s.id) from stacks s join projects p on p.id = s.project_id
        where s.id = ${stackId}::uuid and s.deleted_at is null
        on conflict (stack_id) do update set organization_id = excluded.organization_id, project_name = excluded.project_name,
          stack_name = excluded.stack_name, trouble = excluded.trouble, is_drifted = excluded.is_drifted`);
    },

    setRestorableOrganization: async (stackId: string) => {
      await lockStack(stackId);
      await tx.query(sql.nothing`
        /* rowRepairs.setRestorableOrganization */
        update stacks s set restorable_in = p.organization_id from projects p
        where s.id = ${stackId}::uuid and p.id = s.project_id and s.restorable_until is not null`);
    },

    lock: async (stackId: string) => {
      await lockStack(stackId);
      await tx.query(sql.nothing`
        /* rowRepairs.lock */
        update stacks s set active_update_id = (
          select u.id from updates u where u.stack_id = s.id and u.exclusive and u.status in ${active})
        where s.id = ${stackId}::uuid and s.deleted_at is null`);
    },

    raiseVersion: async (stackId: string) => {
      await lockStack(stackId);
      await tx.query(sql.nothing`
        /* rowRepairs.raiseVersion */
        update stacks s set stack_version = greatest(s.stack_version, (
          select max(u.stack_version) from updates u where u.stack_id = s.id and u.status not in ${active}))
        where s.id = ${stackId}::uuid and s.deleted_at is null`);
    },

    setUpdateOrganization: (updateId: string) =>
      tx.query(sql.nothing`
        /* rowRepairs.setUpdateOrganization */
        with own as (
          select u.id, p.organization_id from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
          where u.id = ${updateId}::uuid),
        drift as (update drift_runs d set organization_id = own.organization_id from own where d.update_id = own.id),
        figures as (
          update update_statistics f set organization_id = own.organization_id from own
          where f.update_id = own.id and f.organization_id <> own.organization_id)
        update updates u set organization_id = own.organization_id from own where u.id = own.id`),

    setStatisticsStack: (updateId: string) =>
      tx.query(sql.nothing`
        /* rowRepairs.setStatisticsStack */
        with own as (select id, stack_id from updates where id = ${updateId}::uuid),
        journal as (update journals j set stack_id = own.stack_id from own where j.update_id = own.id and j.stack_id <> own.stack_id),
        drift as (update drift_runs d set stack_id = own.stack_id from own where d.update_id = own.id and d.stack_id <> own.stack_id)
        update update_statistics f set stack_id = own.stack_id from own where f.update_id = own.id and f.stack_id <> own.stack_id`),

    deleteApproval: (id: string) =>
      tx.query(sql.nothing`
        /* rowRepairs.deleteApproval */
        delete from update_approvals a where a.id = ${id}::uuid and not exists (select 1 from stacks s where s.id = a.stack_id)`),

    endJournal: (updateId: string) =>
      tx.query(sql.nothing`
        /* rowRepairs.endJournal */
        update journals j set ended_at = coalesce(u.ended_at, clock_timestamp()) from updates u
        where j.update_id = ${updateId}::uuid and u.id = j.update_id and j.ended_at is null and u.status not in ${active}`),
  };
}
