import { Type } from 'typebox';
import { positive } from './integers.ts';

export const updatesSettings = {
  HOLDFAST_CHECKPOINT_MODE: Type.Union(
    [Type.Literal('auto'), Type.Literal('journal'), Type.Literal('delta'), Type.Literal('full')],
    {
      description:
        'How CLIs send state: `journal` (entries; whole documents from CLIs without journaling), `delta` (changed bytes; a killed CLI loses its pending operations) or `full` (whole documents). `auto`: the safest that the CLI supports, currently `journal`.',
      default: 'auto',
    },
  ),
  HOLDFAST_SCIM_DEFAULT_ROLE: Type.Union([Type.Literal('viewer'), Type.Literal('member')], {
    description:
      'Role of members whom [SCIM](administration.md#members-from-an-identity-provider-scim) adds: `viewer` or `member`.',
    default: 'member',
  }),
  HOLDFAST_LOCK_WAIT_SECONDS: Type.Integer({
    description: 'How long an update [waits](ci.md#update-queue) for a locked stack. 0: it fails at once.',
    default: 0,
    minimum: 0,
    maximum: 86_400,
  }),
  HOLDFAST_LONG_POLL_SECONDS: positive(
    'Seconds after which the CLI must repeat a waiting call: less than the [idle timeout of every proxy](ci.md#idle-timeouts-of-proxies).',
    50,
    3600,
  ),
  HOLDFAST_UPDATE_HOURS: positive(
    'Maximum duration of an update. Then it is cancelled, and keeps its saved state.',
    24,
    8760,
  ),
  HOLDFAST_BACKGROUND_BYTES_PER_SECOND: Type.Integer({
    description:
      'Stored bytes per second that each worker compares with their hashes. It compresses older versions at four times this rate, in bytes of text. 0 turns both off.',
    default: 1024 * 1024,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_DELETED_STACK_DAYS: Type.Integer({
    description:
      'How long [deleted stacks](administration.md#deleted-stacks) can be restored. A change applies to stacks deleted later.',
    default: 7,
    minimum: 0,
    maximum: 3_650,
  }),
  HOLDFAST_BLOB_RETENTION_SECONDS: positive(
    'How long unused blobs are kept. Postgres can be [restored](backup.md#restore) to a point this far back with the current bucket. If shorter than an hour, it also limits the duration of an upload.',
    86_400,
  ),
};
