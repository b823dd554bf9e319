import { Type } from 'typebox';
import { positive } from './integers.ts';

const quota = (description: string) =>
  Type.Integer({
    description: `${description} 0: no limit. \`holdfast admin set-quota\` sets another limit for one organization.`,
    default: 0,
    minimum: 0,
    maximum: 2 ** 50,
  });

/** Sizes, quotas, jobs and the process itself. */
export const limitsSettings = {
  HOLDFAST_MAX_BODY_BYTES: positive(
    'Maximum size of a decompressed checkpoint or import, in bytes.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_MAX_BATCH_BYTES: positive(
    'Maximum size of a decompressed batch of journal entries or events, and of a delta, in bytes. They are held in memory. When one is rejected, the CLI halves a batch of entries, and sends the whole checkpoint instead of a delta.',
    128 * 1024 * 1024,
    // A single entry becomes a string, and V8 limits strings to 512 MiB.
    256 * 1024 * 1024,
  ),
  HOLDFAST_MAX_CONTROL_BODY_BYTES: positive(
    'Maximum decompressed body of calls that encrypt, decrypt or create a stack, in bytes. Other control calls may use at most 4 MiB of it, or four times the largest field.',
    64 * 1024 * 1024,
    256 * 1024 * 1024,
  ),
  HOLDFAST_MAX_FIELD_BYTES: positive(
    'Maximum size of the configuration, environment, message or program of an update, each in bytes of JSON.',
    1024 * 1024,
    64 * 1024 * 1024,
  ),
  HOLDFAST_MAX_EVENT_BYTES: positive(
    'Maximum size of a stored engine event, in bytes. A larger one is replaced by a warning that names its size.',
    1024 * 1024,
    64 * 1024 * 1024,
  ),
  HOLDFAST_MAX_SECRET_BYTES: positive(
    'Maximum size of a secret to encrypt, in bytes. An update with a larger one cannot save its state.',
    16 * 1024 * 1024,
    64 * 1024 * 1024,
  ),
  HOLDFAST_INLINE_BYTES: positive(
    'Compressed checkpoints up to this size are stored in Postgres, larger ones in the blob store; in bytes.',
    64 * 1024,
  ),
  HOLDFAST_DIRECT_BYTES: positive(
    'Bodies up to this size, as sent, are committed by the API itself, larger ones by a worker; in bytes.',
    256 * 1024,
  ),
  HOLDFAST_IN_FLIGHT_BYTES: positive(
    'Maximum bytes of checkpoint, journal and event bodies that wait for workers, per API process, in bytes. A single body may be larger.',
    256 * 1024 * 1024,
  ),
  HOLDFAST_IMPORT_IN_FLIGHT_BYTES: positive(
    'The same for imports, which are counted separately so that they never hold up checkpoints; in bytes.',
    128 * 1024 * 1024,
  ),
  HOLDFAST_REDIS_IN_FLIGHT_BYTES: positive(
    'Maximum bytes of checkpoint, journal and event bodies in Redis, of all processes together, in bytes. A single body may be larger.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_REDIS_IMPORT_IN_FLIGHT_BYTES: positive('The same for imports, in bytes.', 512 * 1024 * 1024),
  HOLDFAST_MIN_BODY_BYTES_PER_SECOND: positive(
    'Minimum speed at which a client must send a body, averaged over about a minute, in bytes per second. A slower one is cut off with 503, and the CLI retries.',
    16 * 1024,
  ),
  HOLDFAST_BUFFERED_BODY_BYTES: positive(
    'Memory of a process for bodies that are decompressed and parsed in memory, in bytes. Bodies up to 64 KiB do not count; a single one may take more.',
    64 * 1024 * 1024,
  ),
  HOLDFAST_QUOTA_STACKS: quota('Maximum stacks of an organization.'),
  HOLDFAST_QUOTA_BYTES: quota(
    'Bytes of states, journals and events above which an organization may not start updates or imports, or create stacks. Measured about every minute.',
  ),
  HOLDFAST_QUOTA_IN_FLIGHT_BYTES: quota(
    'Maximum body bytes of an organization in flight to workers, for imports and for other writes separately. Further ones wait up to 10 s; a single one may be larger.',
  ),
  HOLDFAST_QUOTA_UPDATES: quota('Maximum concurrent updates of an organization, previews included.'),
  HOLDFAST_QUOTA_REQUESTS_PER_SECOND: quota(
    'Requests that the members of an organization may make, per second and API process. Requests of running updates are never rejected.',
  ),
  HOLDFAST_LARGE_BYTES: positive(
    'Bodies from this size on, as sent, go to the large queue so that they do not hold up the others; in bytes.',
    8 * 1024 * 1024,
  ),
  HOLDFAST_JOB_CONCURRENCY: positive('Jobs of the small queue that one worker process runs at once.', 4, 256),
  HOLDFAST_LARGE_JOB_CONCURRENCY: positive('Jobs of the large queue that one worker process runs at once.', 2, 64),
  HOLDFAST_JOB_WAIT_SECONDS: positive(
    'Maximum time a request waits for its job before it gets 503, in seconds.',
    120,
    3600,
  ),
  HOLDFAST_DRAIN_SECONDS: Type.Integer({
    description:
      'Time between the stop signal and the moment new requests are no longer accepted, in seconds. /readyz answers 503 meanwhile, so that a proxy can notice.',
    default: 0,
    minimum: 0,
    maximum: 300,
  }),
  HOLDFAST_SHUTDOWN_SECONDS: positive('Time limit for each phase of a graceful shutdown, in seconds.', 30, 3600),
  HOLDFAST_LOG_LEVEL: Type.Union(
    [
      Type.Literal('fatal'),
      Type.Literal('error'),
      Type.Literal('warn'),
      Type.Literal('info'),
      Type.Literal('debug'),
      Type.Literal('trace'),
      Type.Literal('silent'),
    ],
    {
      description: 'Minimum level of log lines: fatal, error, warn, info, debug, trace or silent.',
      default: 'info',
    },
  ),
};
