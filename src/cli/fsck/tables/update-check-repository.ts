import { sql } from '../../../shared/platform/db/sql.ts';
import { isPreview } from '../../../shared/updates/preview-fragments.ts';
import { active, idTypes, type TableCheck } from './table-check-repository.ts';

const leaseIsMissing = sql.fragment`(u.lease_hash is null or u.started_at is null or u.must_end_at is null)`;
const hasEnded = sql.fragment`u.status not in ${active}`;

const lacksStatistics = sql.fragment`
  (f.kind, f.is_preview, f.is_success, f.ended_at) is distinct from
    (u.kind, ${isPreview}, u.status = 'succeeded', u.ended_at)
  or abs(f.seconds - extract(epoch from u.ended_at - u.started_at)) > 0.001
  or f.organization_id is not null and f.created_at is distinct from u.created_at`;

export const updateChecks: readonly TableCheck[] = [
  {
    name: 'updates with their leases, pins and statistics',
    from: sql.fragment`updates u left join update_statistics f on f.update_id = u.id`,
    id: sql.fragment`u.id`,
    idType: idTypes.uuid,
    object: sql.fragment`'update ' || u.id`,
    problems: [
      {
        kind: 'lease',
        when: sql.fragment`u.status = 'running' and u.end_reason is null and (
          ${leaseIsMissing} and u.expires_at > clock_timestamp() or u.expires_at > u.must_end_at)`,
        repair: (id) => [
          sql.fragment`update updates u set expires_at = case when ${leaseIsMissing} then least(u.expires_at, clock_timestamp())
              else least(u.expires_at, u.must_end_at) end
            where u.id = ${id}::uuid and u.status = 'running'`,
        ],
      },
      {
        kind: 'update-end',
        when: sql.fragment`(u.status in ${active}) <> (u.ended_at is null)`,
        repair: (id) => [
          sql.fragment`update updates u set ended_at = case when ${hasEnded} then coalesce(u.started_at, u.created_at) end
            where u.id = ${id}::uuid and (u.status in ${active}) <> (u.ended_at is null)`,
        ],
      },
      {
        kind: 'pin',
        when: sql.fragment`u.pinned_by is not null
          and (u.stack_version is null or u.state_deleted_at is not null or u.status in ${active})`,
        repair: (id) => [
          sql.fragment`update updates u set pinned_by = null where u.id = ${id}::uuid
            and (u.stack_version is null or u.state_deleted_at is not null or u.status in ${active})`,
        ],
      },
      {
        kind: 'retention-mark',
        when: sql.fragment`u.state_deleted_at is not null and u.checkpoint_id is not null
          or u.events_deleted_at is not null and exists (select 1 from event_segments g where g.update_id = u.id)`,
        repair: (id) => [
          sql.fragment`update updates u
            set state_deleted_at = case when u.checkpoint_id is null then u.state_deleted_at end,
              events_deleted_at = case when not exists (select 1 from event_segments g where g.update_id = u.id)
                then u.events_deleted_at end
            where u.id = ${id}::uuid`,
        ],
      },
      {
        kind: 'event-rows',
        when: sql.fragment`u.events_archived and exists (select 1 from engine_events e where e.update_id = u.id)`,
        repair: (id) => [
          sql.fragment`update updates u set events_archived = false where u.id = ${id}::uuid
            and exists (select 1 from engine_events e where e.update_id = u.id)`,
        ],
      },
      {
        kind: 'segment-overlap',
        when: sql.fragment`exists (
          select 1 from event_segments g join event_segments n on n.update_id = g.update_id and n.last_sequence > g.last_sequence
            and n.first_sequence <= g.last_sequence where g.update_id = u.id)`,
      },
      {
        kind: 'statistics',
        when: sql.fragment`f.update_id is not null and (${lacksStatistics})`,
        repair: (id) => [
          sql.fragment`
            with gone as (
              delete from update_statistics f using updates u where f.update_id = ${id}::uuid and u.id = f.update_id and u.status in ${active})
            update update_statistics f set kind = u.kind, is_preview = ${isPreview}, is_success = u.status = 'succeeded',
              ended_at = u.ended_at, seconds = extract(epoch from u.ended_at - u.started_at),
              created_at = case when f.organization_id is not null then u.created_at end
            from updates u where u.id = f.update_id and f.update_id = ${id}::uuid and u.ended_at is not null and u.started_at is not null`,
        ],
      },
      {
        kind: 'sequence-head',
        when: sql.fragment`u.full_committed > u.full_assigned or exists (
          select 1 from checkpoints c where c.id = u.checkpoint_id and c.update_id = u.id and c.sequence_number > u.checkpoint_sequence)`,
        repair: (id) => [
          sql.fragment`update updates u set full_assigned = greatest(u.full_assigned, u.full_committed),
              checkpoint_sequence = greatest(u.checkpoint_sequence, (
                select c.sequence_number from checkpoints c where c.id = u.checkpoint_id and c.update_id = u.id))
            where u.id = ${id}::uuid`,
        ],
      },
      {
        kind: 'journal-missing',
        when: sql.fragment`exists (select 1 from journal_entries e where e.update_id = u.id)
          and not exists (select 1 from journals j where j.update_id = u.id)`,
      },
      {
        kind: 'snapshot-left',
        when: sql.fragment`exists (select 1 from journal_snapshots n where n.update_id = u.id)
          and not exists (select 1 from journals j where j.update_id = u.id)`,
        repair: (id) => [
          sql.fragment`delete from journal_snapshots n where n.update_id = ${id}::uuid
            and not exists (select 1 from journals j where j.update_id = n.update_id)`,
        ],
      },
      {
        kind: 'limit-counter',
        when: sql.fragment`exists (
          select 1 from update_limits l where l.update_id = u.id
            and l.changes <> (select count(*) from update_limit_changes c where c.update_id = l.update_id))`,
        repair: (id) => [
          // Locked by a separate statement: the count must see the rows of a transaction for which the lock has waited.
          sql.fragment`select 1 from update_limits where update_id = ${id}::uuid for update`,
          sql.fragment`update update_limits l
            set changes = (select count(*) from update_limit_changes c where c.update_id = l.update_id) where l.update_id = ${id}::uuid`,
        ],
      },
    ],
  },
  {
    name: 'reads of secrets',
    from: sql.fragment`audit_secret_reads r left join updates u on u.id = r.update_id`,
    id: sql.fragment`r.update_id`,
    idType: idTypes.uuid,
    object: sql.fragment`r.object || ', update ' || r.update_id`,
    problems: [
      {
        kind: 'secret-reads',
        when: sql.fragment`u.id is null or ${hasEnded}`,
        repair: (id) => [sql.fragment`select close_secret_reads(array[${id}::uuid])`],
      },
    ],
  },
];
