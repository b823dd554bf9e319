import { Type } from 'typebox';
import { positive } from './integers.ts';

/** A key itself, or the URL of one in a KMS. */
const masterKey = '[A-Za-z0-9_.-]{1,64}:([A-Za-z0-9+/]{43}=|(awskms|gcpkms|vault)://[^,\\s]+)';

/** Settings of the stores and of the keys that protect their data. */
export const storesSettings = {
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
  HOLDFAST_DATABASE_POOL_SIZE: positive(
    'Maximum connections to Postgres per process, and to its replica the same number again.',
    10,
    1000,
  ),
  HOLDFAST_DATABASE_REPLICA_URL: Type.Optional(
    Type.String({
      description:
        'URL of a streaming replica of that Postgres, with a single host. It serves exports, histories, lists of stacks and pages of events, as current as the primary, which serves them while the replica cannot.',
      pattern: '^postgres(ql)?://[^\\s]+$',
      form: 'a URL that begins with postgres://',
    }),
  ),
  HOLDFAST_SECOND_STORE: Type.Optional(
    Type.String({
      description:
        'Blob store of a [second site](backup.md#a-second-site), to which each blob is also written: a folder or `s3://bucket/prefix`. `?replicated=true`: the bucket replicates itself.',
      pattern: '^(s3://[^/\\s]+\\S*|(?![A-Za-z0-9+.-]+://).+)$',
      form: 'a folder or s3://bucket/prefix',
    }),
  ),
  HOLDFAST_BACKUP_TO: Type.Optional(
    Type.String({
      description:
        'Folder, or `s3://bucket/prefix`, to which workers and embedded servers back up on a schedule. Without it, they make no backups.',
      pattern: '^(s3://[^/\\s]+\\S*|(?![A-Za-z0-9+.-]+://).+)$',
      form: 'a folder or s3://bucket/prefix',
    }),
  ),
  HOLDFAST_BACKUP_SCHEDULE: Type.String({
    description: 'When to back up: minute, hour, day of the month, month and day of the week, in UTC.',
    default: '0 3 * * *',
  }),
  HOLDFAST_BACKUP_RECIPIENTS: Type.Optional(
    Type.String({
      description:
        'age recipients, separated by commas, to whom backups are encrypted. Workers cannot verify such backups.',
      pattern: '^age1[a-z0-9]+(,age1[a-z0-9]+)*$',
      form: 'age recipients (age1…), separated by commas',
    }),
  ),
  HOLDFAST_BACKUP_KEEP: positive('How many scheduled backups are kept.', 14, 10_000),
  HOLDFAST_BUNDLE_URL: Type.Optional(
    Type.String({
      description:
        'Folder as `file://DIR`, or `s3://bucket/prefix`, in which workers and embedded servers keep the [break-glass bundle](moving.md#break-glass-bundle). Needs HOLDFAST_BUNDLE_PASSPHRASE.',
      pattern: '^(file:///[^\\s]+|s3://[^/\\s]+\\S*)$',
      form: 'file:///DIR or s3://bucket/prefix',
    }),
  ),
  HOLDFAST_BUNDLE_PASSPHRASE: Type.Optional(
    Type.String({
      description:
        'Passphrase that encrypts secrets in the bundle: PULUMI_CONFIG_PASSPHRASE of people who use the bundle.',
      minLength: 12,
      form: 'a passphrase of at least 12 characters',
    }),
  ),
  HOLDFAST_S3_BUCKET: Type.Optional(
    Type.String({
      description:
        'Bucket for large checkpoints; turns the S3 blob store on. Without it, blobs are files in the data directory.',
      minLength: 1,
    }),
  ),
  HOLDFAST_S3_ENDPOINT: Type.Optional(
    Type.String({
      description:
        'URL of an S3-compatible server. Without it, AWS. An `https` URL whose host begins with the bucket puts it into the host name of requests rather than the path.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_S3_REGION: Type.String({ description: 'Region of the bucket.', default: 'us-east-1', minLength: 1 }),
  HOLDFAST_REDIS_URL: Type.Optional(
    Type.String({
      description:
        'Redis as `redis://user:password@host:6379`, with Sentinel as `redis+sentinel://user:password@a:26379,b:26379/master`, or as a cluster `redis+cluster://user:password@a:6379,b:6379`; `rediss` instead of `redis` for TLS. Passes large writes to worker processes. Without it, the server process does them itself.',
      pattern: '^rediss?(\\+(sentinel|cluster))?://[^\\s]+$',
      form: 'a URL that begins with redis://, rediss://, redis+sentinel:// or redis+cluster://',
    }),
  ),
  HOLDFAST_CA_FILE: Type.Optional(
    Type.String({
      description:
        'PEM file of additional certificate authorities to trust, for TLS to Postgres, Redis, S3, the OpenID Connect provider, issuers of CI tokens and webhooks.',
      minLength: 1,
    }),
  ),
  HOLDFAST_MASTER_KEYS: Type.Optional(
    Type.String({
      description:
        'Key ring that wraps the data keys: `id:base64` pairs (32 bytes each), comma separated. Instead of a key, a pair may have the URL of a key in a [KMS](keys.md#master-keys-in-a-kms). The first wraps new keys, the others only unwrap. Without it, `server` reads the file `master-keys` of the data directory, which it generates for the embedded database, and `holdfast setup` for another. Required by `api`; by `worker` only when documents are encrypted, or with HOLDFAST_BUNDLE_URL.',
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
      'Whether workers write the events of the audit log, earlier ones too, to the blob store under `audit/events/`, as soon as they are chained.',
    default: false,
  }),
  HOLDFAST_AUDIT_EXPORT_FORMAT: Type.Union([Type.Literal('jsonl'), Type.Literal('csv'), Type.Literal('cef')], {
    description: 'Format of exported events, in the blob store and for HOLDFAST_AUDIT_EXPORT_URL: jsonl, csv or cef.',
    default: 'jsonl',
  }),
  HOLDFAST_AUDIT_EXPORT_URL: Type.Optional(
    Type.String({
      description:
        'Where workers post the events of the audit log, earlier ones too, as soon as they are chained. `https`, or `http` to a collector on this machine (localhost).',
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
  HOLDFAST_ENCRYPT_DOCUMENTS: Type.Boolean({
    description:
      'Encrypt checkpoints in the blob store with a data key of their own. Checkpoints and journals in Postgres are not encrypted.',
    default: false,
  }),
};
