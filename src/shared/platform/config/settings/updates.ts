import { Type } from 'typebox';
import { positive } from './integers.ts';

/** Updates, and the work in the background. */
export const updatesSettings = {
  HOLDFAST_CHECKPOINT_MODE: Type.Union(
    [Type.Literal('auto'), Type.Literal('journal'), Type.Literal('delta'), Type.Literal('full')],
    {
      description:
        'How the CLI is asked to send state: `journal` (entries; whole documents from CLIs without journaling), `delta` (changed bytes; a CLI that is killed then loses pending operations), `full` (whole documents). `auto` is the safest mode that the CLI supports, currently `journal`.',
      default: 'auto',
    },
  ),
  HOLDFAST_BEGIN_UPDATE: Type.Boolean({
    description:
      'Let CLIs from 3.259 on begin an update with one call instead of four (`begin-update`). No released CLI uses it yet.',
    default: false,
  }),
  HOLDFAST_SCIM_DEFAULT_ROLE: Type.Union([Type.Literal('viewer'), Type.Literal('member')], {
    description: 'Role of members whom the identity provider of an organization adds (SCIM): `viewer` or `member`.',
    default: 'member',
  }),
  HOLDFAST_LEASE_SECONDS: Type.Integer({
    description: 'Duration of a lease before it must be renewed, in seconds. The CLI relies on 300.',
    default: 300,
    minimum: 300,
    maximum: 3600,
  }),
  HOLDFAST_LOCK_WAIT_SECONDS: Type.Integer({
    description:
      'How long an update waits for a stack that another update holds, in seconds; 0: it is refused at once. The stack tag `lock-wait` overrides it.',
    default: 0,
    minimum: 0,
    maximum: 86_400,
  }),
  HOLDFAST_HOLD_SECONDS: positive(
    'How long a waiting call is held before its client is asked to call again, in seconds. Less than the idle limit of every proxy in between. The CLI calls again nine times.',
    50,
    3600,
  ),
  HOLDFAST_WAIT_ALERT_SECONDS: positive(
    'After this time in the queue of its stack, webhooks are told that an update waits (`update_waiting`), once, in seconds. Rules of kind `wait-alert` override it.',
    600,
    86_400,
  ),
  HOLDFAST_UPDATE_HOURS: positive(
    'Maximum duration of an update, in hours. After that its lease is not renewed, and the update is cancelled; what it has saved is kept.',
    24,
    8760,
  ),
  HOLDFAST_SWEEP_SECONDS: positive(
    'Interval between sweeps for expired leases and orphaned blobs, in seconds.',
    30,
    86_400,
  ),
  HOLDFAST_SCRUB_BYTES_PER_SECOND: Type.Integer({
    description:
      'Rate at which each worker reads stored checkpoints back and compares them with their hashes, in stored bytes per second. 0 turns it off.',
    default: 1024 * 1024,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_SCRUB_DAYS: positive('Time within which each stored checkpoint is read back, in days.', 30, 3650),
  HOLDFAST_ENCODE_VERSIONS: Type.Optional(
    Type.Boolean({
      description:
        'Whether workers store older versions as what distinguishes them from others, which takes a small part of the space. A release that does not know this setting cannot read such versions: turn it on when all processes know it. Default true with the embedded database, otherwise false.',
    }),
  ),
  HOLDFAST_ENCODE_BYTES_PER_SECOND: positive(
    'Rate at which one worker does that, in bytes of their text per second. The default takes about a quarter of a core while there is something to do.',
    4 * 1024 * 1024,
  ),
  HOLDFAST_DELETED_STACK_DAYS: Type.Integer({
    description:
      'How long a deleted stack can be restored, in days. Its data is deleted afterwards. Holds for stacks that are deleted from then on. 0: the data is deleted at once.',
    default: 7,
    minimum: 0,
    maximum: 3_650,
  }),
  HOLDFAST_JOURNAL_GRACE_SECONDS: Type.Integer({
    description:
      'How long the journal of an update is kept after its state was stored and read back, in seconds. A damaged state can be rebuilt from it. 0 deletes it at once.',
    default: 3600,
    minimum: 0,
    maximum: 31_536_000,
  }),
  HOLDFAST_EVENT_PACK_DELAY_SECONDS: Type.Integer({
    description:
      'How long after the end of an update its engine events are packed, in seconds. The release before packing does not show packed events: set a high value for as long as you may go back to it.',
    default: 60,
    minimum: 0,
    maximum: 315_360_000,
  }),
  HOLDFAST_EVENT_BACKLOG_BYTES_PER_SECOND: Type.Integer({
    description:
      'Rate at which engine events of updates from before the upgrade to this release are packed, oldest first, in bytes of events per second. 0 leaves them as they are.',
    default: 2 * 1024 * 1024,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_INDEX_BACKLOG_BYTES_PER_SECOND: Type.Integer({
    description:
      'Rate at which each worker indexes the resources of stacks from before the upgrade to this release, in bytes of their states per second. 0 leaves them until their next update.',
    default: 4 * 1024 * 1024,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_BLOB_RETENTION_SECONDS: positive(
    'How long a blob is kept after its last reference is gone, in seconds. Postgres can be restored to a point this far back with the current bucket.',
    86_400,
  ),
  HOLDFAST_BLOB_GRACE_SECONDS: positive(
    'Maximum time an upload may take to arrive, in seconds. No blob is deleted sooner, and a deleted one is deleted again after it.',
    3600,
  ),
  HOLDFAST_RECONCILE_HOURS: Type.Integer({
    description:
      'Interval between runs that compare the blob store with the database, in hours. 0 turns them off (`holdfast admin reconcile` does one run).',
    default: 24,
    minimum: 0,
    maximum: 8760,
  }),
  HOLDFAST_RECONCILE_OBJECTS_PER_SECOND: positive(
    'Objects and rows that such a run checks per second.',
    500,
    1_000_000,
  ),
};
