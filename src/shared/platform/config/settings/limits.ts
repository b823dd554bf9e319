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
  HOLDFAST_MEMORY_BYTES: Type.Optional(
    Type.Integer({
      description:
        'Memory budget of a process, in bytes: an eighth is for bodies that wait for workers, a sixteenth for such imports, a thirty-second for bodies that are parsed. A single body may take more. Default: the limit of the container or the memory of the machine, at most 2 GiB.',
      minimum: 64 * 1024 * 1024,
      maximum: 2 ** 40,
    }),
  ),
  HOLDFAST_MAX_BODY_BYTES: positive(
    'Maximum size of a decompressed checkpoint or import, in bytes.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_INLINE_BYTES: positive(
    'Compressed checkpoints up to this size are stored in Postgres, larger ones in the blob store; in bytes.',
    64 * 1024,
  ),
  HOLDFAST_DIRECT_BYTES: positive(
    'Bodies up to this size, as sent, are committed by the API itself, larger ones by a worker; in bytes.',
    256 * 1024,
  ),
  HOLDFAST_REDIS_IN_FLIGHT_BYTES: positive(
    'Maximum bytes of checkpoint, journal and event bodies in Redis, of all processes together, in bytes. Imports may take half of it in addition. A single body may be larger.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_QUOTA_STACKS: quota('Maximum stacks of an organization.'),
  HOLDFAST_QUOTA_BYTES: quota(
    'Bytes of states, journals and events above which an organization may not start updates or imports, or create stacks. Measured about every minute.',
  ),
  HOLDFAST_QUOTA_UPDATES: quota('Maximum concurrent updates of an organization, previews included.'),
  HOLDFAST_QUOTA_REQUESTS_PER_SECOND: quota(
    'Requests that the members of an organization may make, per second and API process. Requests of running updates are never rejected.',
  ),
  HOLDFAST_JOB_CONCURRENCY: positive(
    'Jobs of the small queue that one worker process runs at once; half as many of the large queue run beside them.',
    4,
    256,
  ),
  HOLDFAST_DRAIN_SECONDS: Type.Integer({
    description:
      'Time between the stop signal and the end of new requests, in seconds. /readyz answers 503 meanwhile, so that a proxy can notice.',
    default: 0,
    minimum: 0,
    maximum: 300,
  }),
  HOLDFAST_SHUTDOWN_SECONDS: positive(
    'Time limit for the rest of a graceful shutdown, in seconds: give a process this time and HOLDFAST_DRAIN_SECONDS between the stop signal and a kill.',
    60,
    3600,
  ),
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
