import { Type } from 'typebox';
import { positive } from './integers.ts';

/** A key itself, or the URL of a key in a KMS. */
const masterKey = '[A-Za-z0-9_.-]{1,64}:([A-Za-z0-9+/]{43}=|(awskms|gcpkms|vault)://[^,\\s]+)';

export const storesSettings = {
  HOLDFAST_DATA_DIR: Type.String({
    description: 'Directory of the embedded database, of the file blob store and of the generated master key.',
    default: './data',
    minLength: 1,
  }),
  HOLDFAST_DATABASE_URL: Type.Optional(
    Type.String({
      description:
        'Postgres (15 or later): `postgres://user:password@host:5432/name`, with a standby `…@a:5432,b:5432/name`. Without it, an embedded Postgres runs in the data directory.',
      pattern: '^postgres(ql)?://[^\\s]+$',
      form: 'a URL that begins with postgres://',
    }),
  ),
  HOLDFAST_DATABASE_POOL_SIZE: positive('Maximum connections to Postgres per process, and to its replica.', 10, 1000),
  HOLDFAST_DATABASE_REPLICA_URL: Type.Optional(
    Type.String({
      description:
        'URL of a streaming [replica](deploy.md#postgres), with a single host. Serves exports, histories, lists of stacks and events; the primary serves them while the replica cannot.',
      pattern: '^postgres(ql)?://[^\\s]+$',
      form: 'a URL that begins with postgres://',
    }),
  ),
  HOLDFAST_SECOND_STORE: Type.Optional(
    Type.String({
      description:
        'Blob store of a [second site](backup.md#a-second-site): a folder or `s3://bucket/prefix`; `?replicated=true` if the bucket replicates itself, `?strict=true` if a write must be in both stores.',
      pattern: '^(s3://[^/\\s]+\\S*|(?![A-Za-z0-9+.-]+://).+)$',
      form: 'a folder or s3://bucket/prefix',
    }),
  ),
  HOLDFAST_BACKUP_TO: Type.Optional(
    Type.String({
      description: 'Folder or `s3://bucket/prefix` for scheduled [backups](backup.md). Without it, none are made.',
      pattern: '^(s3://[^/\\s]+\\S*|(?![A-Za-z0-9+.-]+://).+)$',
      form: 'a folder or s3://bucket/prefix',
    }),
  ),
  HOLDFAST_BACKUP_SCHEDULE: Type.String({
    description: 'When to back up, as a cron expression in UTC.',
    default: '0 3 * * *',
  }),
  HOLDFAST_BACKUP_RECIPIENTS: Type.Optional(
    Type.String({
      description: 'age recipients of encrypted backups, comma-separated. Workers cannot verify encrypted backups.',
      pattern: '^age1[a-z0-9]+(,age1[a-z0-9]+)*$',
      form: 'age recipients (age1…), separated by commas',
    }),
  ),
  HOLDFAST_BACKUP_KEEP: positive('Number of scheduled backups to keep.', 14, 10_000),
  HOLDFAST_BUNDLE_URL: Type.Optional(
    Type.String({
      description:
        '`file:///DIR` or `s3://bucket/prefix` for the [break-glass bundle](moving.md#break-glass-bundle). Needs HOLDFAST_BUNDLE_PASSPHRASE or HOLDFAST_BUNDLE_KMS.',
      pattern: '^(file:///[^\\s]+|s3://[^/\\s]+\\S*)$',
      form: 'file:///DIR or s3://bucket/prefix',
    }),
  ),
  HOLDFAST_BUNDLE_PASSPHRASE: Type.Optional(
    Type.String({
      description: 'Passphrase that encrypts secrets in the bundle.',
      minLength: 12,
      form: 'a passphrase of at least 12 characters',
    }),
  ),
  HOLDFAST_BUNDLE_KMS: Type.Optional(
    Type.String({
      description: '[KMS key](keys.md) that encrypts secrets in the bundle, instead of a passphrase.',
      pattern: '^(awskms|gcpkms|vault)://\\S+$',
      form: 'awskms://…, gcpkms://… or vault://…',
    }),
  ),
  HOLDFAST_S3_BUCKET: Type.Optional(
    Type.String({
      description: 'Bucket of the blob store. Without it, blobs are files in the data directory.',
      pattern: '^[^:/\\s]+$',
      form: 'the name of a bucket, or the alias of an access point',
    }),
  ),
  HOLDFAST_S3_ENDPOINT: Type.Optional(
    Type.String({
      description:
        'URL of the S3 server, if it is not AWS. If it is `https` and the host begins with the bucket, paths of requests omit the bucket.',
      pattern: '^https?://[^\\s]+$',
      form: 'a URL that begins with http:// or https://',
    }),
  ),
  HOLDFAST_S3_REGION: Type.String({ description: 'Region of the bucket.', default: 'us-east-1', minLength: 1 }),
  HOLDFAST_REDIS_URL: Type.Optional(
    Type.String({
      description:
        '`redis://user:password@host:6379`, or [Sentinel or a cluster](deploy.md#redis); `rediss` for TLS. Redis passes large writes to workers; without it, `server` runs them itself.',
      pattern: '^rediss?(\\+(sentinel|cluster))?://[^\\s]+$',
      form: 'a URL that begins with redis://, rediss://, redis+sentinel:// or redis+cluster://',
    }),
  ),
  HOLDFAST_CA_FILE: Type.Optional(
    Type.String({
      description: 'PEM file of additional certificate authorities for outgoing TLS connections, also of commands.',
      minLength: 1,
    }),
  ),
  HOLDFAST_MASTER_KEYS: Type.Optional(
    Type.String({
      description:
        '[Master keys](keys.md): `id:key` pairs, comma-separated; a key is 32 bytes in Base64, or a URL in a [KMS](keys.md#master-keys-in-a-kms). Without it, `server` reads the file `master-keys` in the data directory; `server` generates it for the embedded database, `holdfast setup` for another.',
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
      description: 'File with the Vault token, read before each use; takes precedence over HOLDFAST_VAULT_TOKEN.',
      minLength: 1,
    }),
  ),
  HOLDFAST_AUDIT_EXPORT: Type.Boolean({
    description:
      'Whether workers export the [audit log](audit.md#retention-and-export) to the blob store, under `audit/events/`.',
    default: false,
  }),
  HOLDFAST_AUDIT_EXPORT_FORMAT: Type.Union([Type.Literal('jsonl'), Type.Literal('csv'), Type.Literal('cef')], {
    description: 'Format of both audit exports: `jsonl`, `csv` or `cef`.',
    default: 'jsonl',
  }),
  HOLDFAST_AUDIT_EXPORT_URL: Type.Optional(
    Type.String({
      description: 'URL to which workers post the audit log: `https`, or `http` on this machine.',
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
    description: 'How long audit events are kept; whole months are dropped. 0: forever.',
    default: 0,
    minimum: 0,
    maximum: 36_500,
  }),
  HOLDFAST_DATA_KEY_DAYS: Type.Integer({
    description: 'Age at which a data key is replaced by the next encryption. 0: never.',
    default: 0,
    minimum: 0,
    maximum: 36_500,
  }),
  HOLDFAST_ENCRYPT_DOCUMENTS: Type.Boolean({
    description: 'Whether [documents](keys.md#encrypted-documents) are encrypted in the blob store.',
    default: false,
  }),
};
