import { Type } from 'typebox';
import { type Queryable, type Row, type SqlFragment, sql } from '../../shared/platform/db/sql.ts';

export const CheckedRow = Type.Object({
  id: Type.String(),
  /** The name, if there is one. */
  object: Type.String(),
  /** Kinds of findings, separated by spaces. */
  problems: Type.String(),
});
export type CheckedRow = Row<typeof CheckedRow>;

/** One page of rows after `after`. */
export type RowPage = (after: string | null, limit: number) => Promise<readonly CheckedRow[]>;

const active = sql.fragment`('not started', 'running')`;

/** Joins the kinds whose condition holds. */
export function problems(...found: readonly (readonly [kind: string, condition: SqlFragment])[]): SqlFragment {
  const each = found.map(([kind, condition]) => sql.fragment`case when ${condition} then ${kind}::text end`);
  return sql.fragment`concat_ws(' ', ${sql.join(each, sql.fragment`, `)}) as problems`;
}

/** The condition that a stack is listed as this row says. */
export const isListed = sql.fragment`exists (
  select 1 from stacks s join projects p on p.id = s.project_id
  where s.id = l.stack_id and s.deleted_at is null and p.organization_id = l.organization_id and p.name = l.project_name
    and s.name = l.stack_name
    and exists (select 1 from listed_tags(s.tags) t where t.tag_name = l.tag_name and t.tag_value = l.tag_value))`;

/** The values that lists show of a stack `s` without an active update, and the values that they should show. */
const shownByLists = sql.fragment`s.resource_count, s.last_kind, s.last_status, s.last_started_at`;
export const lastOf = sql.fragment`
  select c.resource_count, u.kind, u.status, coalesce(u.started_at, u.created_at)
  from (select 1) one left join checkpoints c on c.id = s.checkpoint_id
  left join lateral (
    select * from updates where stack_id = s.id and not dry_run and kind <> 'preview' and status not in ${active}
      and (started_at is not null or ended_at is null)
    order by number desc limit 1) u on true`;

/** Invariants that the schema does not enforce. Each page is one statement, so a transaction is never seen half. */
export function createRowCheckRepository(db: Queryable): Readonly<Record<string, RowPage>> {
  return {
    stacks: (after, limit) =>
      db.any(sql.rows(CheckedRow)`
        /* rowChecks.stacks */
        select s.id::text as id, o.name || '/' || p.name || '/' || s.name as object, ${problems(
          [
            'listing',
            sql.fragment`s.deleted_at is null and (exists (
              select 1 from listed_tags(s.tags) t where not exists (
                select 1 from stack_listings l where l.organization_id = p.organization_id and l.tag_name = t.tag_name
                  and l.project_name = p.name and l.stack_name = s.name and l.stack_id = s.id and l.tag_value = t.tag_value))
              or s.active_update_id is null and not exists (select ${shownByLists} intersect ${lastOf}))`,
          ],
          [
            'change-listing',
            sql.fragment`s.deleted_at is null and not exists (
              select 1 from stack_changes c where c.stack_id = s.id and c.organization_id = p.organization_id
                and c.project_name = p.name and c.stack_name = s.name and c.trouble is not distinct from stack_trouble(s.id)
                and (c.is_drifted or not stack_is_drifted(s.id)))`,
          ],
          [
            'restorable',
            sql.fragment`s.restorable_until is not null and s.restorable_in is distinct from p.organization_id`,
          ],
          [
            'lock',
            sql.fragment`s.deleted_at is null and s.active_update_id is distinct from (
              select u.id from updates u where u.stack_id = s.id and u.exclusive and u.status in ${active})`,
          ],
          ['version', sql.fragment`s.deleted_at is null and s.stack_version < v.version`],
          [
            'head',
            sql.fragment`s.deleted_at is null and s.active_update_id is null and s.stack_version = v.version
              and s.checkpoint_id is distinct from v.checkpoint_id`,
          ],
          [
            'foreign-state',
            sql.fragment`exists (
              select 1 from checkpoints c where c.id in (s.checkpoint_id, s.deleted_checkpoint_id) and c.stack_id <> s.id)`,
          ],
          [
            'index-behind',
            sql.fragment`s.deleted_at is null and s.checkpoint_id is not null
              and not exists (select 1 from state_index_due d where d.stack_id = s.id)
              and not exists (
                select 1 from state_indexes i where i.stack_id = s.id and i.checkpoint_id = s.checkpoint_id
                  and i.referring_in is not distinct from case when exists (
                    select 1 from stack_resources r where r.stack_id = s.id and r.reads is not null) then p.organization_id end)`,
          ],
        )}
        from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
          left join lateral (
            select u.stack_version as version, u.checkpoint_id from updates u
            where u.stack_id = s.id and u.stack_version is not null and u.status not in ${active}
            order by u.stack_version desc limit 1) v on true
        where ${after}::uuid is null or s.id > ${after}::uuid order by s.id limit ${limit}`),

    updates: (after, limit) =>
      db.any(sql.rows(CheckedRow)`
        /* rowChecks.updates */
        select u.id::text as id, 'update ' || u.id as object, ${problems(
          [
            'update-organization',
            sql.fragment`u.organization_id is distinct from p.organization_id
              or d.update_id is not null and d.organization_id is distinct from p.organization_id
              or f.organization_id <> p.organization_id`,
          ],
          [
            'foreign-state',
            sql.fragment`exists (
              select 1 from checkpoints c where c.id in (u.checkpoint_id, u.base_checkpoint_id) and c.stack_id <> u.stack_id)`,
          ],
          [
            'update-stack',
            sql.fragment`j.stack_id <> u.stack_id or d.stack_id <> u.stack_id or f.stack_id <> u.stack_id`,
          ],
        )}
        from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
          left join journals j on j.update_id = u.id left join drift_runs d on d.update_id = u.id
          left join update_statistics f on f.update_id = u.id
        where ${after}::uuid is null or u.id > ${after}::uuid order by u.id limit ${limit}`),

    journals: (after, limit) =>
      db.any(sql.rows(CheckedRow)`
        /* rowChecks.journals */
        select j.update_id::text as id, 'update ' || j.update_id as object, ${problems(
          [
            'journal-counter',
            sql.fragment`j.entry_count <> (select count(*) from journal_entries e where e.update_id = j.update_id)`,
          ],
          ['journal-open', sql.fragment`j.ended_at is null and u.status not in ${active}`],
          [
            'journal-waiting',
            sql.fragment`j.ended_at < now() - interval '1 hour' and j.compacted_at is null and s.deleted_at is null`,
          ],
          [
            'journal-invalid',
            sql.fragment`j.accepted_at is null and j.compaction_error is not null and s.deleted_at is null`,
          ],
        )}
        from journals j join updates u on u.id = j.update_id join stacks s on s.id = u.stack_id
        where ${after}::uuid is null or j.update_id > ${after}::uuid order by j.update_id limit ${limit}`),

    listings: (after, limit) => {
      const key = (at: number) => sql.fragment`(${after ?? '[]'}::json ->> ${at}::integer)`;
      return db.any(sql.rows(CheckedRow)`
        /* rowChecks.listings */
        select json_build_array(l.organization_id, l.tag_name, l.project_name, l.stack_name)::text as id,
          l.project_name || '/' || l.stack_name || case when l.tag_name = '' then '' else ' under the tag ' || l.tag_name end as object,
          ${problems(['listing', sql.fragment`not ${isListed}`])}
        from stack_listings l
        where ${after}::text is null or (l.organization_id, l.tag_name, l.project_name, l.stack_name)
          > (${key(0)}::uuid, ${key(1)}, ${key(2)}, ${key(3)})
        order by l.organization_id, l.tag_name, l.project_name, l.stack_name limit ${limit}`);
    },

    changes: (after, limit) =>
      db.any(sql.rows(CheckedRow)`
        /* rowChecks.changes */
        select c.stack_id::text as id, c.project_name || '/' || c.stack_name as object, ${problems([
          'change-listing',
          sql.fragment`not exists (select 1 from stacks s where s.id = c.stack_id and s.deleted_at is null)`,
        ])}
        from stack_changes c
        where ${after}::uuid is null or c.stack_id > ${after}::uuid order by c.stack_id limit ${limit}`),

    approvals: (after, limit) =>
      db.any(sql.rows(CheckedRow)`
        /* rowChecks.approvals */
        select a.id::text as id, 'approval ' || a.id as object, ${problems([
          'approval',
          sql.fragment`not exists (select 1 from stacks s where s.id = a.stack_id)`,
        ])}
        from update_approvals a
        where ${after}::uuid is null or a.id > ${after}::uuid order by a.id limit ${limit}`),
  };
}
