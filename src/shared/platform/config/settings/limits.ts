import { Type } from 'typebox';
import { positive } from './integers.ts';

const quota = (description: string) =>
  Type.Integer({
    description: `${description} 0: no limit.`,
    default: 0,
    minimum: 0,
    maximum: 2 ** 50,
  });

/** Sizes, quotas, jobs and the process itself. */
export const limitsSettings = {
  HOLDFAST_MEMORY_BYTES: Type.Optional(
    Type.Integer({
      description:
        "Memory budget of a process: an eighth for bodies that wait for workers, a sixteenth for waiting imports, a thirty-second for parsed bodies. A single body may take more. Default: the container's limit or the machine's memory, at most 2 GiB.",
      minimum: 64 * 1024 * 1024,
      maximum: 2 ** 40,
    }),
  ),
  HOLDFAST_MAX_BODY_BYTES: positive('Maximum size of a decompressed checkpoint or import.', 1024 * 1024 * 1024),
  HOLDFAST_INLINE_BYTES: positive(
    'Compressed checkpoints up to this size are stored in Postgres, larger ones in the blob store.',
    64 * 1024,
  ),
  HOLDFAST_DIRECT_BYTES: positive(
    'The API itself commits bodies up to this size as sent; workers commit larger ones.',
    256 * 1024,
  ),
  HOLDFAST_REDIS_IN_FLIGHT_BYTES: positive(
    'Maximum bytes of request bodies in Redis, for all processes together. Imports may take half as much in addition. A single body may be larger.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_QUOTA_STACKS: quota('Maximum stacks of an organization.'),
  HOLDFAST_QUOTA_BYTES: quota(
    'Bytes of states, journals, events and policy packs above which an organization may not start updates (except previews and `destroy`) or imports, create stacks or publish packs.',
  ),
  HOLDFAST_QUOTA_UPDATES: quota('Maximum concurrent updates of an organization, previews included.'),
  HOLDFAST_QUOTA_REQUESTS_PER_SECOND: quota(
    'Requests of an organization per second and API process. Requests of running updates are never rejected.',
  ),
  HOLDFAST_JOB_CONCURRENCY: positive(
    'Jobs below 8 MiB (body, or base of a journal) that a worker process runs at once, beside half as many larger ones.',
    4,
    256,
  ),
  HOLDFAST_DRAIN_SECONDS: Type.Integer({
    description:
      'How long a stopping process still accepts requests, while `/readyz` answers 503 so that proxies notice.',
    default: 0,
    minimum: 0,
    maximum: 300,
  }),
  HOLDFAST_SHUTDOWN_SECONDS: positive('Time limit for the rest of a shutdown.', 60, 3600),
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
      description: 'Minimum level of log lines: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`.',
      default: 'info',
    },
  ),
};
