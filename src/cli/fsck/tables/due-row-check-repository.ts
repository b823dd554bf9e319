import { sql } from '../../../shared/platform/db/sql.ts';
import { isReferenced } from '../../../shared/state/checkpoints/blob-repository.ts';
import { idTypes, type TableCheck } from './table-check-repository.ts';

/** No process claims or postpones a row for this long. */
const tooFar = sql.fragment`clock_timestamp() + interval '1 day'`;

/** A waiting delivery without its webhook, which a task should have deleted. Other deliveries are deleted with their event. */
const webhookIsGone = sql.fragment`(d.next_at < clock_timestamp() - interval '1 hour'
  and not exists (select 1 from webhooks w where w.id = d.webhook_id))`;

const bundleIsPassed = sql.fragment`(b.stack_id = c.stack_id and b.changed_at = c.changed_at
  and (b.stack_version is distinct from s.stack_version or b.tags is distinct from s.tags
    or b.checkpoint_id <> (select u.checkpoint_id from updates u where u.stack_id = s.id and u.stack_version = s.stack_version)))`;

/** Deletions, copies, deliveries, claims. */
export const dueRowChecks: readonly TableCheck[] = [
  {
    name: 'deletions of objects',
    from: sql.fragment`(select * from blobs where pending_deletion_since is not null) b`,
    id: sql.fragment`b.key`,
    idType: idTypes.text,
    object: sql.fragment`b.key`,
    problems: [
      {
        kind: 'blob-doomed',
        when: isReferenced,
        repair: (id) => [
          sql.fragment`update blobs b set pending_deletion_since = null, delete_at = null, deleted_at = null, unreferenced_since = null
            where b.key = ${id} and ${isReferenced}`,
        ],
      },
    ],
  },
  {
    name: 'copies due in the second store',
    from: sql.fragment`blob_copies_due d`,
    id: sql.fragment`d.key`,
    idType: idTypes.text,
    object: sql.fragment`d.key`,
    problems: [
      {
        kind: 'copy-queue',
        when: sql.fragment`d.try_at > ${tooFar} or d.is_deletion and exists (
          select 1 from blobs b where b.key = d.key and b.pending_deletion_since is null and ${isReferenced})`,
        repair: (id) => [
          sql.fragment`update blob_copies_due d set try_at = least(d.try_at, clock_timestamp()), is_deletion = d.is_deletion and not exists (
              select 1 from blobs b where b.key = d.key and b.pending_deletion_since is null and ${isReferenced})
            where d.key = ${id}`,
        ],
      },
    ],
  },
  {
    name: 'holds of backups',
    from: sql.fragment`blob_holds h`,
    id: sql.fragment`h.id`,
    idType: idTypes.uuid,
    object: sql.fragment`'hold ' || h.id`,
    problems: [
      {
        kind: 'blob-hold',
        when: sql.fragment`h.held_until > ${tooFar}`,
        repair: (id) => [sql.fragment`delete from blob_holds h where h.id = ${id}::uuid and h.held_until > ${tooFar}`],
      },
    ],
  },
  {
    name: 'stacks in the bundle',
    from: sql.fragment`bundled_stacks b left join stack_changes c on c.stack_id = b.stack_id left join stacks s on s.id = b.stack_id`,
    id: sql.fragment`json_build_array(b.organization, b.project, b.stack)::text`,
    idType: idTypes.text,
    object: sql.fragment`b.organization || '/' || b.project || '/' || b.stack`,
    problems: [
      {
        kind: 'bundle-queue',
        when: sql.fragment`b.postponed_until > ${tooFar} or ${bundleIsPassed}`,
        repair: (id) => [
          sql.fragment`update bundled_stacks set postponed_until = null, changed_at = null
            where (organization, project, stack) = (${id}::json ->> 0, ${id}::json ->> 1, ${id}::json ->> 2)`,
        ],
      },
    ],
  },
  {
    name: 'deliveries of webhooks',
    from: sql.fragment`webhook_deliveries d`,
    id: sql.fragment`d.id`,
    idType: idTypes.uuid,
    object: sql.fragment`'delivery ' || d.id`,
    problems: [
      {
        kind: 'orphan',
        when: webhookIsGone,
        repair: (id) => [sql.fragment`delete from webhook_deliveries d where d.id = ${id}::uuid and ${webhookIsGone}`],
      },
      {
        kind: 'claim',
        when: sql.fragment`d.state = 'waiting' and greatest(d.claimed_until, d.next_at) > ${tooFar}`,
        repair: (id) => [
          sql.fragment`update webhook_deliveries set claimed_until = null, next_at = clock_timestamp() where id = ${id}::uuid`,
        ],
      },
    ],
  },
  {
    name: 'stacks to be indexed',
    from: sql.fragment`state_index_due d`,
    id: sql.fragment`d.stack_id`,
    idType: idTypes.uuid,
    object: sql.fragment`'stack ' || d.stack_id`,
    problems: [
      {
        kind: 'claim',
        when: sql.fragment`d.claimed_until > ${tooFar}`,
        repair: (id) => [
          sql.fragment`update state_index_due set claim = null, claimed_until = null where stack_id = ${id}::uuid`,
        ],
      },
    ],
  },
];
