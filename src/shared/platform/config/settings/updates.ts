import { Type } from 'typebox';
import { positive } from './integers.ts';

/** Settings of updates and of background work. */
export const updatesSettings = {
  HOLDFAST_CHECKPOINT_MODE: Type.Union(
    [Type.Literal('auto'), Type.Literal('journal'), Type.Literal('delta'), Type.Literal('full')],
    {
      description:
        'How the CLI is asked to send state: `journal` (entries; whole documents from CLIs without journaling), `delta` (changed bytes; a CLI that is killed then loses pending operations), `full` (whole documents). `auto` is the safest mode that the CLI supports, currently `journal`.',
      default: 'auto',
    },
  ),
  HOLDFAST_SCIM_DEFAULT_ROLE: Type.Union([Type.Literal('viewer'), Type.Literal('member')], {
    description: 'Role of members whom the identity provider of an organization adds (SCIM): `viewer` or `member`.',
    default: 'member',
  }),
  HOLDFAST_LOCK_WAIT_SECONDS: Type.Integer({
    description:
      'How long an update waits for a stack that another update holds, in seconds; 0: it is refused at once. The stack tag `lock-wait` overrides it.',
    default: 0,
    minimum: 0,
    maximum: 86_400,
  }),
  HOLDFAST_HOLD_SECONDS: positive(
    'How long a call waits before its client is asked to call again, in seconds. Less than the idle limit of every proxy in between. The CLI calls again nine times.',
    50,
    3600,
  ),
  HOLDFAST_UPDATE_HOURS: positive(
    'Maximum duration of an update, in hours. After that its lease is not renewed, and the update is cancelled; what it has saved is kept.',
    24,
    8760,
  ),
  HOLDFAST_BACKGROUND_BYTES_PER_SECOND: Type.Integer({
    description:
      'Rate at which each worker compares stored checkpoints with their hashes, in stored bytes per second. It encodes older versions as differences at four times this rate, in bytes of their text. 0 turns both off.',
    default: 1024 * 1024,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_DELETED_STACK_DAYS: Type.Integer({
    description:
      'How long a stack that is deleted from then on can be restored, in days. Its data is deleted afterwards; 0: at once.',
    default: 7,
    minimum: 0,
    maximum: 3_650,
  }),
  HOLDFAST_BLOB_RETENTION_SECONDS: positive(
    'How long a blob is kept after its last reference is gone, in seconds; an upload may take as long, and an hour at most. Postgres can be restored to a point this far back with the current bucket.',
    86_400,
  ),
};
