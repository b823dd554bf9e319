import { Type } from 'typebox';

const positive = (description: string, defaultValue: number, maximum = 2 ** 40) =>
  Type.Integer({ description, default: defaultValue, minimum: 1, maximum });

const quota = (description: string) =>
  Type.Integer({
    description: `${description} 0 is no limit. \`holdfast admin set-quota\` sets another limit for one organization.`,
    default: 0,
    minimum: 0,
    maximum: 2 ** 50,
  });

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
  HOLDFAST_MANAGEMENT_LISTEN: Type.Optional(
    Type.String({
      description:
        'Address and port for `/metrics`, and for `/healthz` and `/readyz` with their figures, of a server or API process; it has no login. Default `0.0.0.0:9092`; `127.0.0.1:9092` with the embedded database. `same`: on the port of the service.',
      pattern: '^(same|(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5})$',
    }),
  ),
  HOLDFAST_TLS_CERT_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file with the certificate of the service and those between it and the root: the service then speaks TLS (1.2 or later) only. Read again when it changes.',
      minLength: 1,
    }),
  ),
  HOLDFAST_TLS_KEY_FILE: Type.Optional(
    Type.String({ description: 'PEM file with the private key of that certificate.', minLength: 1 }),
  ),
  HOLDFAST_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      description:
        'Addresses and networks of the reverse proxies in front, comma separated (`10.0.0.0/8,fd00::1`). Their X-Forwarded-For is believed, and the limit of connections per address is not for them.',
      minLength: 1,
    }),
  ),
  HOLDFAST_MAX_CONNECTIONS: positive(
    'Most connections of clients to one process at once; trusted proxies have as many again for themselves. What is more gets 503.',
    4096,
    1_000_000,
  ),
  HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS: positive(
    'Most of them from one address, or from one IPv6 network of 64 bits. Lower it where clients do not share an address.',
    1024,
    1_000_000,
  ),
  HOLDFAST_HEAD_SECONDS: positive(
    'Longest time until the head of a request is there, from the connection or its first byte on, in seconds.',
    20,
    3600,
  ),
  HOLDFAST_IDLE_SECONDS: positive(
    'How long a connection is kept open without a request, in seconds. A proxy in front should keep its own for less.',
    75,
    3600,
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
        'Postgres (15 or later) as `postgres://user:password@host:5432/name`; with several hosts (`a:5432,b:5432`) the one that takes writes is used. Without it an embedded Postgres runs in the data folder.',
      pattern: '^postgres(ql)?://[^\\s]+$',
    }),
  ),
  HOLDFAST_DATABASE_POOL_SIZE: positive('Most connections to Postgres per process.', 10, 1000),
  HOLDFAST_DATABASE_TIMEOUT_MS: positive('Longest run of one SQL statement, in ms.', 60_000),
  HOLDFAST_DATABASE_CONNECT_MS: positive(
    'Longest time to connect to one Postgres host, in ms. A statement whose answer is later than its longest run and this together is given up, and so is its connection.',
    5_000,
    600_000,
  ),
  HOLDFAST_DATABASE_ACQUIRE_MS: positive(
    'Longest wait for a free connection to Postgres before a call answers 503, in ms.',
    10_000,
    600_000,
  ),
  HOLDFAST_START_WAIT_SECONDS: Type.Integer({
    description:
      'How long a process that starts waits for Postgres, Redis and S3 to be there before it ends, in seconds; 0 does not wait.',
    default: 60,
    minimum: 0,
    maximum: 3600,
  }),
  HOLDFAST_MASTER_KEYS: Type.Optional(
    Type.String({
      description:
        'Key ring that wraps the data keys: `id:base64` pairs (32 bytes each), comma separated; the first wraps new keys, the others only unwrap. Generated in the data folder when the database is embedded. Needed by `server` and `api`, by `worker` only where documents are sealed.',
      pattern: '^[A-Za-z0-9_.-]{1,64}:[A-Za-z0-9+/]{43}=(,[A-Za-z0-9_.-]{1,64}:[A-Za-z0-9+/]{43}=)*$',
    }),
  ),
  HOLDFAST_DATA_KEY_DAYS: Type.Integer({
    description:
      'Age from which a data key is followed by a new one when something is to be encrypted, in days; 0: never.',
    default: 0,
    minimum: 0,
    maximum: 36_500,
  }),
  HOLDFAST_SEAL_DOCUMENTS: Type.Boolean({
    description:
      'Encrypt checkpoints that go to the blob store by a data key of their own. What is there already is read either way; checkpoints and journals in Postgres are not encrypted.',
    default: false,
  }),
  HOLDFAST_BOOTSTRAP: Type.Optional(
    Type.String({
      description: 'Path of a JSON or YAML file with organizations, members and tokens, applied at each start.',
      minLength: 1,
    }),
  ),
  HOLDFAST_ORGANIZATION_CREATION: Type.Optional(
    Type.Union([Type.Literal('anyone'), Type.Literal('site-admin')], {
      description:
        'Who may create an organization by creating its first stack: `anyone` or `site-admin`. Default `site-admin`; `anyone` with the embedded database.',
    }),
  ),
  HOLDFAST_WRONG_TOKENS_PER_MINUTE: positive(
    'Wrong tokens and leases per minute from one address (IPv6: a network of 64 bits), in all replicas together, before those that are not known are looked up many at once; from all addresses together ten times as many. Valid tokens are let in all the same.',
    60,
    1_000_000,
  ),
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
        'Redis as `redis://user:password@host:6379`, or `rediss://` for TLS, with maxmemory-policy noeviction: hands large writes to worker processes. Without it they are done in the server process.',
      pattern: '^rediss?://[^\\s]+$',
    }),
  ),
  HOLDFAST_CA_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file of certificate authorities to believe, besides the usual ones, when Postgres, Redis or S3 is reached with TLS.',
      minLength: 1,
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
  HOLDFAST_BEGIN_UPDATE: Type.Boolean({
    description:
      'Offer CLIs from 3.259 on to begin an update by one call instead of four (`begin-update`). No release of the CLI asks for it yet.',
    default: false,
  }),
  HOLDFAST_LEASE_SECONDS: Type.Integer({
    description: 'Life of a lease before it must be renewed, in seconds. The CLI counts on 300.',
    default: 300,
    minimum: 300,
    maximum: 3600,
  }),
  HOLDFAST_UPDATE_HOURS: positive(
    'Longest life of an update, in hours: its lease is not renewed beyond that, and the update is cancelled with what it has saved.',
    24,
    8760,
  ),
  HOLDFAST_SWEEP_SECONDS: positive(
    'Time between two sweeps for expired leases and orphaned blobs, in seconds.',
    30,
    86_400,
  ),
  HOLDFAST_SCRUB_BYTES_PER_SECOND: Type.Integer({
    description:
      'Rate at which each worker reads stored checkpoints back and compares them with their hashes, in stored bytes per second; 0 turns it off.',
    default: 1024 * 1024,
    minimum: 0,
    maximum: 2 ** 40,
  }),
  HOLDFAST_SCRUB_DAYS: positive('Time within which each stored checkpoint is read back, in days.', 30, 3650),
  HOLDFAST_JOURNAL_GRACE_SECONDS: Type.Integer({
    description:
      'How long the journal of an update is kept after its state was stored and read back, in seconds: from it a damaged state can be made anew. 0 deletes it at once.',
    default: 3600,
    minimum: 0,
    maximum: 31_536_000,
  }),
  HOLDFAST_BLOB_RETENTION_SECONDS: positive(
    'Time that a blob is kept after the last reference to it has gone, in seconds. Postgres can be restored to a point as far back, with the bucket as it is.',
    86_400,
  ),
  HOLDFAST_BLOB_GRACE_SECONDS: positive(
    'Longest time that an upload is expected to be on its way, in seconds: no blob is deleted sooner, and a deleted one is deleted once more after it.',
    3600,
  ),
  HOLDFAST_RECONCILE_HOURS: Type.Integer({
    description:
      'Time between two rounds that compare the blob store with the database, in hours; 0 turns them off (`holdfast admin reconcile` does one).',
    default: 24,
    minimum: 0,
    maximum: 8760,
  }),
  HOLDFAST_RECONCILE_OBJECTS_PER_SECOND: positive(
    'Objects and rows that such a round looks at, per second.',
    500,
    1_000_000,
  ),
  HOLDFAST_MAX_BODY_BYTES: positive('Largest inflated checkpoint or import, in bytes.', 1024 * 1024 * 1024),
  HOLDFAST_MAX_BATCH_BYTES: positive(
    'Largest inflated batch of journal entries or events, and largest delta, in bytes. They are held in memory. The CLI halves a batch of entries that is refused, and sends the whole checkpoint for a delta.',
    128 * 1024 * 1024,
    // A single entry becomes a string, of which V8 makes none beyond 512 MiB.
    256 * 1024 * 1024,
  ),
  HOLDFAST_MAX_CONTROL_BODY_BYTES: positive(
    'Largest inflated body of calls that encrypt or decrypt and of those that create a stack, in bytes. Other control calls take at most 4 MiB of it, or four times the largest field.',
    64 * 1024 * 1024,
    256 * 1024 * 1024,
  ),
  HOLDFAST_MAX_FIELD_BYTES: positive(
    'Largest configuration, environment, message or program of an update, each in bytes of JSON.',
    1024 * 1024,
    64 * 1024 * 1024,
  ),
  HOLDFAST_MAX_EVENT_BYTES: positive(
    'Largest engine event that is kept, in bytes. A warning that names its size stands in the place of a larger one.',
    1024 * 1024,
    64 * 1024 * 1024,
  ),
  HOLDFAST_MAX_SECRET_BYTES: positive(
    'Largest secret that is encrypted, in bytes. An update with a larger one cannot save its state.',
    16 * 1024 * 1024,
    64 * 1024 * 1024,
  ),
  HOLDFAST_INLINE_BYTES: positive(
    'Compressed checkpoints up to this size are kept in Postgres, larger ones in the blob store; in bytes.',
    64 * 1024,
  ),
  HOLDFAST_DIRECT_BYTES: positive(
    'Bodies up to this size as sent are committed by the API itself, larger ones by a worker; in bytes.',
    256 * 1024,
  ),
  HOLDFAST_IN_FLIGHT_BYTES: positive(
    'Most body bytes of checkpoints, journal entries and events that wait for workers, per API process, in bytes. A single body may be larger.',
    256 * 1024 * 1024,
  ),
  HOLDFAST_IMPORT_IN_FLIGHT_BYTES: positive(
    'The same for imports, which count apart so that they never hold up checkpoints; in bytes.',
    128 * 1024 * 1024,
  ),
  HOLDFAST_REDIS_IN_FLIGHT_BYTES: positive(
    'Most body bytes of checkpoints, journal entries and events in Redis, of all processes together, in bytes. A single body may be larger.',
    1024 * 1024 * 1024,
  ),
  HOLDFAST_REDIS_IMPORT_IN_FLIGHT_BYTES: positive('The same for imports, in bytes.', 512 * 1024 * 1024),
  HOLDFAST_MIN_BODY_BYTES_PER_SECOND: positive(
    'Least speed at which a client may send a body, on average over about a minute, in bytes per second. A slower one is cut off with 503, which the CLI answers by repeating its call.',
    16 * 1024,
  ),
  HOLDFAST_INFLATED_BYTES: positive(
    'Memory of a process for bodies that are inflated and taken apart, in bytes. Bodies up to 64 KiB do not count; a single one may take more.',
    64 * 1024 * 1024,
  ),
  HOLDFAST_QUOTA_STACKS: quota('Most stacks of an organization.'),
  HOLDFAST_QUOTA_BYTES: quota(
    'Bytes of states, journals and events from which on an organization may begin no updates and imports, and create no stacks; measured about every minute.',
  ),
  HOLDFAST_QUOTA_IN_FLIGHT_BYTES: quota(
    'Most body bytes of an organization on their way to workers: of imports, and of other writes. Further ones wait for 10 s; a single one may be larger.',
  ),
  HOLDFAST_QUOTA_UPDATES: quota('Most updates of an organization at once, previews included.'),
  HOLDFAST_QUOTA_REQUESTS_PER_SECOND: quota(
    'Calls that the members of an organization may make, per second and API process. Calls of running updates are never refused.',
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
