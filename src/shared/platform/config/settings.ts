import { Type } from 'typebox';

const positive = (description: string, defaultValue: number, maximum = 2 ** 40) =>
  Type.Integer({ description, default: defaultValue, minimum: 1, maximum });

/**
 * Every setting, by the name of its environment variable. The README's table and `.env.example` are generated from
 * this schema (`npm run settings`).
 */
export const Settings = Type.Object({
  HOLDFAST_LISTEN: Type.Optional(
    Type.String({
      description:
        'Address and port to listen on. Default `0.0.0.0:9090`; `127.0.0.1:9090` with the embedded database.',
      pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5}$',
    }),
  ),
  HOLDFAST_PUBLIC_URL: Type.Optional(
    Type.String({
      description: 'URL under which users reach the service; shown in the login hint.',
      pattern: '^https?://[^\\s]+$',
    }),
  ),
  HOLDFAST_DATA_DIR: Type.String({
    description: 'Folder of the embedded database, of the file blob store and of the generated master key.',
    default: './data',
    minLength: 1,
  }),
  HOLDFAST_DATABASE_URL: Type.Optional(
    Type.String({
      description:
        'Postgres (15 or later) as `postgres://user:password@host:5432/name`. Without it an embedded Postgres runs in the data folder.',
      pattern: '^postgres(ql)?://[^\\s]+$',
    }),
  ),
  HOLDFAST_DATABASE_POOL_SIZE: positive('Most connections to Postgres per process.', 10, 1000),
  HOLDFAST_DATABASE_TIMEOUT_MS: positive('Longest run of one SQL statement, in ms.', 60_000),
  HOLDFAST_MASTER_KEYS: Type.Optional(
    Type.String({
      description:
        'Key ring that wraps the data key of each stack: `id:base64` pairs (32 bytes each), comma separated; the first wraps new keys, the others only unwrap. Generated in the data folder when the database is embedded.',
      pattern: '^[A-Za-z0-9_.-]{1,64}:[A-Za-z0-9+/]{43}=(,[A-Za-z0-9_.-]{1,64}:[A-Za-z0-9+/]{43}=)*$',
    }),
  ),
  HOLDFAST_BOOTSTRAP: Type.Optional(
    Type.String({
      description: 'Path of a JSON or YAML file with organizations, members and tokens, applied at each start.',
      minLength: 1,
    }),
  ),
  HOLDFAST_ORGANIZATION_CREATION: Type.Union([Type.Literal('anyone'), Type.Literal('site-admin')], {
    description: 'Who may create an organization by creating its first stack: `anyone` or `site-admin`.',
    default: 'anyone',
  }),
  HOLDFAST_S3_BUCKET: Type.Optional(
    Type.String({
      description:
        'Bucket for large checkpoints; turns the S3 blob store on. Without it blobs are files in the data folder.',
      minLength: 1,
    }),
  ),
  HOLDFAST_S3_ENDPOINT: Type.Optional(
    Type.String({
      description: 'URL of an S3-compatible server; without it AWS itself.',
      pattern: '^https?://[^\\s]+$',
    }),
  ),
  HOLDFAST_S3_REGION: Type.String({ description: 'Region of the bucket.', default: 'us-east-1', minLength: 1 }),
  HOLDFAST_S3_PATH_STYLE: Type.Boolean({
    description: 'Put the bucket into the path rather than the host name.',
    default: true,
  }),
  HOLDFAST_S3_TIMEOUT_MS: positive('Longest wait for the S3 server to make progress on one request, in ms.', 30_000),
  HOLDFAST_REDIS_URL: Type.Optional(
    Type.String({
      description:
        'Redis as `redis://host:6379`, with maxmemory-policy noeviction: hands large writes to worker processes. Without it they are done in the server process.',
      pattern: '^rediss?://[^\\s]+$',
    }),
  ),
  HOLDFAST_WORKER_LISTEN: Type.String({
    description: 'Address and port of the health and metrics endpoints of a worker process.',
    default: '0.0.0.0:9091',
    pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5}$',
  }),
  HOLDFAST_CHECKPOINT_MODE: Type.Union(
    [Type.Literal('auto'), Type.Literal('journal'), Type.Literal('delta'), Type.Literal('full')],
    {
      description:
        'How the CLI is asked to send state: `journal` (entries; whole documents from CLIs that keep no journal), `delta` (changed bytes; the CLI then loses pending operations when it is killed), `full` (whole documents); `auto` is the safest that the CLI can do, at present `journal`.',
      default: 'auto',
    },
  ),
  HOLDFAST_LEASE_SECONDS: Type.Integer({
    description: 'Life of a lease before it must be renewed, in seconds. The CLI counts on 300.',
    default: 300,
    minimum: 300,
    maximum: 3600,
  }),
  HOLDFAST_SWEEP_SECONDS: positive(
    'Time between two sweeps for expired leases and orphaned blobs, in seconds.',
    30,
    86_400,
  ),
  HOLDFAST_BLOB_GRACE_SECONDS: positive('Age before a blob that nothing refers to is deleted, in seconds.', 3600),
  HOLDFAST_MAX_BODY_BYTES: positive('Largest inflated checkpoint or import, in bytes.', 1024 * 1024 * 1024),
  HOLDFAST_MAX_BATCH_BYTES: positive(
    'Largest inflated batch of journal entries or events, and largest delta, in bytes. They are held in memory, those above 8 MiB one at a time per process. The CLI halves a batch of entries that is refused, and sends the whole checkpoint for a delta.',
    128 * 1024 * 1024,
    // A single entry becomes a string, of which V8 makes none beyond 512 MiB.
    256 * 1024 * 1024,
  ),
  HOLDFAST_MAX_CONTROL_BODY_BYTES: positive('Largest inflated body of any other call, in bytes.', 64 * 1024 * 1024),
  HOLDFAST_INLINE_BYTES: positive(
    'Compressed checkpoints up to this size are kept in Postgres, larger ones in the blob store; in bytes.',
    64 * 1024,
  ),
  HOLDFAST_DIRECT_BYTES: positive(
    'Bodies up to this size as sent are committed by the API itself, larger ones by a worker; in bytes.',
    256 * 1024,
  ),
  HOLDFAST_IN_FLIGHT_BYTES: positive(
    'Most body bytes waiting for workers, per API process, in bytes.',
    256 * 1024 * 1024,
  ),
  HOLDFAST_REDIS_IN_FLIGHT_BYTES: positive(
    'Most body bytes waiting in Redis, of all processes together, in bytes.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_LARGE_BYTES: positive(
    'Bodies from this size on (as sent) go to the large lane, so that they do not hold up the others; in bytes.',
    8 * 1024 * 1024,
  ),
  HOLDFAST_JOB_CONCURRENCY: positive('Jobs of the small lane that one worker process runs at once.', 4, 256),
  HOLDFAST_LARGE_JOB_CONCURRENCY: positive('Jobs of the large lane that one worker process runs at once.', 2, 64),
  HOLDFAST_JOB_WAIT_SECONDS: positive(
    'Longest time that a call waits for its job before it answers 503, in seconds.',
    120,
    3600,
  ),
  HOLDFAST_DRAIN_SECONDS: Type.Integer({
    description:
      'Time from the signal to stop until no more requests are taken, in seconds. /readyz says 503 during it: give a proxy that asks it the time to notice.',
    default: 0,
    minimum: 0,
    maximum: 300,
  }),
  HOLDFAST_SHUTDOWN_SECONDS: positive('Limit for each part of a graceful shutdown, in seconds.', 30, 3600),
  HOLDFAST_LOG_LEVEL: Type.Union(
    (['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const).map((level) => Type.Literal(level)),
    {
      description: 'Least severe log lines to print: fatal, error, warn, info, debug, trace or silent.',
      default: 'info',
    },
  ),
});

export type Settings = Type.Static<typeof Settings>;
export type SettingName = keyof Settings;

/** Settings that must not be printed. */
export const secretSettings: readonly SettingName[] = [
  'HOLDFAST_DATABASE_URL',
  'HOLDFAST_REDIS_URL',
  'HOLDFAST_MASTER_KEYS',
];
