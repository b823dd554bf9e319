import { Type } from 'typebox';

const positive = (description: string, defaultValue: number, maximum = 2 ** 40) =>
  Type.Integer({ description, default: defaultValue, minimum: 1, maximum });

const quota = (description: string) =>
  Type.Integer({
    description: `${description} 0: no limit. \`holdfast admin set-quota\` sets another limit for one organization.`,
    default: 0,
    minimum: 0,
    maximum: 2 ** 50,
  });

const requests = (source: string, defaultValue: number) =>
  Type.Integer({
    description: `Maximum requests per minute ${source}, across all replicas, in bursts of up to a minute's worth. Further ones wait or get 429. What running updates need is never rejected. 0: no limit.`,
    default: defaultValue,
    minimum: 0,
    maximum: 2 ** 40,
  });

/** A key itself, or the URL of one in a KMS. */
const masterKey = '[A-Za-z0-9_.-]{1,64}:([A-Za-z0-9+/]{43}=|(awskms|gcpkms|vault)://[^,\\s]+)';

/**
 * Every setting, by the name of its environment variable. `docs/settings.md` and `.env.example` are generated
 * from this schema (`npm run settings`).
 */
export const Settings = Type.Object({
  HOLDFAST_LISTEN: Type.Optional(
    Type.String({
      description:
        'Address and port of the service. Default `0.0.0.0:9090`; `127.0.0.1:9090` with the embedded database.',
      pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5}$',
      form: 'an address and a port, such as 0.0.0.0:9090',
    }),
  ),
  HOLDFAST_MANAGEMENT_LISTEN: Type.Optional(
    Type.String({
      description:
        'Address and port for `/metrics` and for the detailed `/healthz` and `/readyz` of a server or API process. It has no login. Default `0.0.0.0:9092`; `127.0.0.1:9092` with the embedded database. `same`: use the port of the service.',
      pattern: '^(same|(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5})$',
      form: '`same`, or an address and a port, such as 0.0.0.0:9092',
    }),
  ),
  HOLDFAST_TLS_CERT_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file with the certificate of the service and its intermediates. The service then speaks TLS (1.2 or later) only. Reloaded when it changes.',
      minLength: 1,
    }),
  ),
  HOLDFAST_TLS_KEY_FILE: Type.Optional(
    Type.String({ description: 'PEM file with the private key of that certificate.', minLength: 1 }),
  ),
  HOLDFAST_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      description:
        'Addresses and networks of the reverse proxies in front, comma separated (`10.0.0.0/8,fd00::1`). Their X-Forwarded-For is trusted, and the connection limit per address does not apply to them.',
      minLength: 1,
    }),
  ),
  HOLDFAST_MAX_CONNECTIONS: positive(
    'Maximum client connections per process. Trusted proxies have the same number again for themselves. Further connections get 503.',
    4096,
    1_000_000,
  ),
  HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS: positive(
    'Maximum connections from one address, or from one IPv6 /64 network. Lower it where clients do not share an address.',
    1024,
    1_000_000,
  ),
  HOLDFAST_HEADERS_TIMEOUT_SECONDS: positive(
    'Maximum time to receive the headers of a request, counted from the connection or from the first byte of the request, in seconds.',
    20,
    3600,
  ),
  HOLDFAST_KEEP_ALIVE_SECONDS: positive(
    'How long an idle connection is kept open, in seconds. A proxy in front should close its idle connections sooner.',
    75,
    3600,
  ),
  HOLDFAST_PUBLIC_URL: Type.Optional(
    Type.String({
      description:
        'URL under which users reach the service. Shown in the login hint, and part of the addresses under which the CLI uploads and downloads policy packs.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_SESSION_IDLE_MINUTES: positive(
    'A person who is signed in by a browser is signed out after this time without a request, in minutes.',
    720,
    525_600,
  ),
  HOLDFAST_SESSION_HOURS: positive(
    'A person who is signed in by a browser must sign in again after this time, in hours.',
    168,
    8760,
  ),
  HOLDFAST_OIDC_ISSUER: Type.Optional(
    Type.String({
      description:
        'Issuer of an OpenID Connect provider with which people may sign in, such as `https://login.example.com/realms/main`. Needs HOLDFAST_PUBLIC_URL; the provider must permit the redirect to its path `/sign-in/provider/callback`.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_OIDC_CLIENT_ID: Type.Optional(
    Type.String({ description: 'Id of this service as a client of the provider.', minLength: 1 }),
  ),
  HOLDFAST_OIDC_CLIENT_SECRET: Type.Optional(
    Type.String({ description: 'Secret of that client. Without it, a public client with PKCE.', minLength: 1 }),
  ),
  HOLDFAST_OIDC_NAME: Type.String({
    description: 'Name of the provider on the sign-in page.',
    default: 'single sign-on',
    minLength: 1,
    maxLength: 60,
  }),
  HOLDFAST_OIDC_SCOPES: Type.String({
    description: 'Scopes to ask the provider for, separated by spaces.',
    default: 'openid profile email',
    pattern: '^(.* )?openid( .*)?$',
    form: 'a list of scopes with `openid` among them',
  }),
  HOLDFAST_OIDC_CA_FILE: Type.Optional(
    Type.String({
      description: 'PEM file of certificate authorities to trust for TLS to the provider, instead of the usual ones.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_ALLOWED_DOMAINS: Type.Optional(
    Type.String({
      description:
        'Only people with a verified e-mail address in one of these domains may sign in with the provider; comma separated.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_LOGIN_CLAIM: Type.String({
    description:
      'Claim that becomes the login of a user who is created by the first sign-in. Users are recognized by the subject of the provider, never by this. With `email`, the address must be verified.',
    default: 'preferred_username',
    minLength: 1,
  }),
  HOLDFAST_OIDC_GROUPS_CLAIM: Type.String({
    description: 'Claim with the groups of a person: a list of texts.',
    default: 'groups',
    minLength: 1,
  }),
  HOLDFAST_OIDC_GROUPS_FILE: Type.Optional(
    Type.String({
      description:
        'JSON file that says which roles and teams groups of the provider give: a list of `{"group", "organization", "role", "teams"}`. Applied at each sign-in.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OIDC_CREATE_USERS: Type.Union([Type.Literal('mapped'), Type.Literal('all'), Type.Literal('none')], {
    description:
      'Whose user is created by the first sign-in with the provider: those to whom their groups give a role (`mapped`), everybody (`all`), or nobody (`none`; an operator links users by `holdfast admin user link`).',
    default: 'mapped',
  }),
  HOLDFAST_DATA_DIR: Type.String({
    description: 'Directory of the embedded database, of the file blob store and of the generated master key.',
    default: './data',
    minLength: 1,
  }),
  HOLDFAST_DATABASE_URL: Type.Optional(
    Type.String({
      description:
        'Postgres (15 or later) as `postgres://user:password@host:5432/name`. With several hosts (`a:5432,b:5432`) the one that accepts writes is used. Without it, an embedded Postgres runs in the data directory.',
      pattern: '^postgres(ql)?://[^\\s]+$',
      form: 'a URL that begins with postgres://',
    }),
  ),
  HOLDFAST_DATABASE_POOL_SIZE: positive('Maximum connections to Postgres per process.', 10, 1000),
  HOLDFAST_DATABASE_REPLICA_URL: Type.Optional(
    Type.String({
      description:
        'A streaming replica of that Postgres, as one URL like it with a single host. Serves exports, histories, lists of stacks and pages of events of `server` and `api`, never older than what any client has been told; while it cannot, Postgres itself does.',
      pattern: '^postgres(ql)?://[^\\s]+$',
      form: 'a URL that begins with postgres://',
    }),
  ),
  HOLDFAST_DATABASE_REPLICA_POOL_SIZE: positive('Maximum connections to the replica per process.', 10, 1000),
  HOLDFAST_DATABASE_TIMEOUT_MS: positive('Timeout of one SQL statement, in ms.', 60_000),
  HOLDFAST_DATABASE_CONNECT_MS: positive(
    'Timeout of connecting to one Postgres host, in ms. A statement that has no answer after its own timeout plus this one is abandoned and its connection closed.',
    5_000,
    600_000,
  ),
  HOLDFAST_DATABASE_ACQUIRE_MS: positive(
    'Maximum wait for a free Postgres connection before a request gets 503, in ms.',
    10_000,
    600_000,
  ),
  HOLDFAST_START_WAIT_SECONDS: Type.Integer({
    description:
      'How long a starting process waits for Postgres, Redis and S3 before it exits, in seconds. 0 does not wait.',
    default: 60,
    minimum: 0,
    maximum: 3600,
  }),
  HOLDFAST_MASTER_KEYS: Type.Optional(
    Type.String({
      description:
        'Key ring that wraps the data keys: `id:base64` pairs (32 bytes each), comma separated. Instead of the key itself, an id may be followed by the URL of a key in a KMS: `id:awskms://alias/NAME?region=REGION`, `id:gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K` or `id:vault://HOST/transit/KEY`. The first wraps new keys, the others only unwrap. Generated in the data directory when the database is embedded. Required by `server` and `api`; by `worker` only when documents are sealed.',
      pattern: `^${masterKey}(,${masterKey})*$`,
      form: 'a list of id:key, where a key is 32 bytes in base64 (`openssl rand -base64 32`) or the URL of a key in a KMS',
    }),
  ),
  HOLDFAST_VAULT_TOKEN: Type.Optional(
    Type.String({
      description: 'Token for `vault://` keys in HOLDFAST_MASTER_KEYS.',
      pattern: '^[\\x21-\\x7e]+$',
      form: 'a token without spaces, in ASCII',
    }),
  ),
  HOLDFAST_VAULT_TOKEN_FILE: Type.Optional(
    Type.String({
      description:
        'File with the token for `vault://` keys, such as a Vault agent writes; read before each use. Wins over HOLDFAST_VAULT_TOKEN.',
      minLength: 1,
    }),
  ),
  HOLDFAST_AUDIT_EXPORT: Type.Boolean({
    description:
      'Whether workers write the events of the audit log to the blob store, under `audit/events/`, as soon as they are sealed. What was sealed before is written, too.',
    default: false,
  }),
  HOLDFAST_AUDIT_EXPORT_FORMAT: Type.Union([Type.Literal('jsonl'), Type.Literal('csv'), Type.Literal('cef')], {
    description: 'Format of exported events, in the blob store and for HOLDFAST_AUDIT_EXPORT_URL: jsonl, csv or cef.',
    default: 'jsonl',
  }),
  HOLDFAST_AUDIT_EXPORT_URL: Type.Optional(
    Type.String({
      description:
        'Where workers post the events of the audit log as soon as they are sealed; what was sealed before, too. `https`, or `http` to a collector on this machine (localhost).',
      pattern: '^(https://|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])[:/])[^\\s@]+$',
      form: 'an https:// URL without a password, or http:// to this machine',
    }),
  ),
  HOLDFAST_AUDIT_EXPORT_TOKEN: Type.Optional(
    Type.String({
      description: 'Bearer token for HOLDFAST_AUDIT_EXPORT_URL.',
      pattern: '^[\\x21-\\x7e]+$',
      form: 'a token without spaces, in ASCII',
    }),
  ),
  HOLDFAST_AUDIT_RETENTION_DAYS: Type.Integer({
    description:
      'How long events of the audit log are kept, in days. Whole months are dropped, once their last event is that old. 0: forever.',
    default: 0,
    minimum: 0,
    maximum: 36_500,
  }),
  HOLDFAST_DATA_KEY_DAYS: Type.Integer({
    description: 'Age at which a data key is replaced by a new one at the next encryption, in days. 0: never.',
    default: 0,
    minimum: 0,
    maximum: 36_500,
  }),
  HOLDFAST_SEAL_DOCUMENTS: Type.Boolean({
    description:
      'Encrypt checkpoints in the blob store with a data key of their own. Existing ones can be read either way. Checkpoints and journals in Postgres are not encrypted.',
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
  HOLDFAST_MEMBER_ADDITION: Type.Union([Type.Literal('admin'), Type.Literal('site-admin')], {
    description:
      'Who may make users of the server members of an organization by their login: its admins (`admin`), or only those of them who are site admins (`site-admin`). With `admin`, they can find out which logins exist on the server.',
    default: 'admin',
  }),
  HOLDFAST_INVALID_TOKENS_PER_MINUTE: positive(
    'Invalid tokens and leases per minute from one address (IPv6: a /64 network), across all replicas, before unknown ones are looked up in batches. All addresses together have ten times as many. Valid tokens are always accepted.',
    60,
    1_000_000,
  ),
  HOLDFAST_TOKEN_REQUESTS_PER_MINUTE: requests('with one API token', 30_000),
  HOLDFAST_USER_REQUESTS_PER_MINUTE: requests('by one user with all their tokens', 60_000),
  HOLDFAST_ADDRESS_REQUESTS_PER_MINUTE: requests('from one address (IPv6: a /64 network)', 120_000),
  HOLDFAST_S3_BUCKET: Type.Optional(
    Type.String({
      description:
        'Bucket for large checkpoints; turns the S3 blob store on. Without it, blobs are files in the data directory.',
      minLength: 1,
    }),
  ),
  HOLDFAST_S3_ENDPOINT: Type.Optional(
    Type.String({
      description: 'URL of an S3-compatible server. Without it, AWS.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_S3_REGION: Type.String({ description: 'Region of the bucket.', default: 'us-east-1', minLength: 1 }),
  HOLDFAST_S3_PATH_STYLE: Type.Boolean({
    description: 'Put the bucket name into the path rather than the host name.',
    default: true,
  }),
  HOLDFAST_S3_TIMEOUT_MS: positive('Maximum wait for the S3 server to make progress on one request, in ms.', 30_000),
  HOLDFAST_REDIS_URL: Type.Optional(
    Type.String({
      description:
        'Redis as `redis://user:password@host:6379`, with Sentinel as `redis+sentinel://user:password@a:26379,b:26379/master`, or as a cluster `redis+cluster://user:password@a:6379,b:6379`; `rediss` instead of `redis` for TLS. It must have maxmemory-policy noeviction. Passes large writes to worker processes. Without it, the server process does them itself.',
      pattern: '^rediss?(\\+(sentinel|cluster))?://[^\\s]+$',
      form: 'a URL that begins with redis://, rediss://, redis+sentinel:// or redis+cluster://',
    }),
  ),
  HOLDFAST_CA_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file of certificate authorities to trust, in addition to the usual ones, for TLS to Postgres, Redis, S3, issuers of CI tokens and webhooks.',
      minLength: 1,
    }),
  ),
  HOLDFAST_OUTGOING_ALLOW: Type.Optional(
    Type.String({
      description:
        'Where the server may call on behalf of users (issuers of CI tokens, webhooks), besides public addresses over HTTPS; comma separated. Networks (`10.20.0.0/16`), host names that may have any address (`gitlab.internal`), and origins that may be called without TLS (`http://ci.internal:8080`).',
      minLength: 1,
    }),
  ),
  HOLDFAST_ISSUER_OUTAGE_SECONDS: Type.Integer({
    description:
      'How long tokens of a CI issuer that cannot be reached are checked with the keys that it had before, in seconds.',
    default: 3600,
    minimum: 0,
    maximum: 604_800,
  }),
  HOLDFAST_WORKER_LISTEN: Type.String({
    description: 'Address and port of the health and metrics endpoints of a worker process.',
    default: '0.0.0.0:9091',
    pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s]*):[0-9]{1,5}$',
    form: 'an address and a port, such as 0.0.0.0:9090',
  }),
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
});

export type Settings = Type.Static<typeof Settings>;
export type SettingName = keyof Settings;

/** Settings that must not be printed. */
export const secretSettings: readonly SettingName[] = [
  'HOLDFAST_DATABASE_URL',
  'HOLDFAST_DATABASE_REPLICA_URL',
  'HOLDFAST_REDIS_URL',
  'HOLDFAST_MASTER_KEYS',
  'HOLDFAST_OIDC_CLIENT_SECRET',
  'HOLDFAST_VAULT_TOKEN',
  // It may contain a token.
  'HOLDFAST_AUDIT_EXPORT_URL',
  'HOLDFAST_AUDIT_EXPORT_TOKEN',
];
