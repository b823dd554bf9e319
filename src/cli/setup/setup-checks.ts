import { X509Certificate } from 'node:crypto';
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
} from 'node:fs';
import path from 'node:path';
import { createSecureContext } from 'node:tls';
import { untilBlobStore } from '../../shared/platform/blobs/blob-start.ts';
import { type Config, ConfigError } from '../../shared/platform/config/config.ts';
import { readMasterKeys } from '../../shared/platform/config/data-dir.ts';
import type { GivenSettings } from '../../shared/platform/config/settings-file.ts';
import { withPostgresAtStart } from '../../shared/platform/db/postgres-start.ts';
import type { StartWait } from '../../shared/platform/lifecycle/start-wait.ts';
import type { SystemUser } from '../../shared/platform/processes/system-user.ts';

/** `server_version_num` of the oldest Postgres. */
export const minPostgres = 150_000;
const checkMs = 10_000;

/** Folders that the service's unit replaces by others: ProtectHome and PrivateTmp. */
const hidden = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'];
export const fileSettings = [
  'HOLDFAST_TLS_CERT_FILE',
  'HOLDFAST_TLS_KEY_FILE',
  'HOLDFAST_CA_FILE',
  'HOLDFAST_VAULT_TOKEN_FILE',
  'HOLDFAST_BOOTSTRAP',
  'HOLDFAST_OIDC_GROUPS_FILE',
] as const;
const urlSettings = ['HOLDFAST_DATABASE_URL', 'HOLDFAST_DATABASE_REPLICA_URL', 'HOLDFAST_REDIS_URL'] as const;

/**
 * Creates the data directory if needed. Throws ConfigError if the service cannot write to it. The service runs as `account` and, if
 * `isUnit`, as a unit of systemd.
 */
export function checkDataDir(directory: string, account: SystemUser | null, isUnit = account !== null): void {
  const refuse = (why: string): ConfigError => refused('HOLDFAST_DATA_DIR', `${directory} ${why}`);
  if (isUnit && isHidden(directory)) throw refuse(hiddenReason);
  try {
    const created = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (created !== undefined && account) chownSync(directory, account.uid, account.gid);
  } catch (error) {
    throw refuse(`cannot be created: ${(error as Error).message}`);
  }
  if (!isAllowed(directory, 'w', account)) throw refuse('cannot be written by the user of the service');
}

/** Throws ConfigError if the service cannot read a file that the settings name; files that may be created later may be missing. */
export function checkFiles(settings: GivenSettings, account: SystemUser | null, isUnit = account !== null): void {
  const named = fileSettings.map((name): [string, string | null] => [name, settings[name] ?? null]);
  const inUrls = urlSettings.flatMap((name) => {
    const query = new URLSearchParams(/\?([^#]*)/.exec(settings[name] ?? '')?.[1]);
    return ['sslrootcert', 'sslcert', 'sslkey'].map((part): [string, string | null] => [
      `${name}: ${part}`,
      query.get(part),
    ]);
  });
  for (const [setting, file] of [...named, ...inUrls]) {
    if (file === null || file === 'system') continue;
    if (isUnit && isHidden(file)) throw refused(setting, `${file} ${hiddenReason}`);
    if (existsSync(file) && !isAllowed(file, 'r', account))
      throw refused(setting, `${file} cannot be read by the user of the service`);
  }
}

const hiddenReason = 'is in a folder that the service does not see; use another one';

function isHidden(file: string): boolean {
  return hidden.some((each) => file === each || file.startsWith(`${each}/`));
}

/** Runs `work` with the ids of the service, so that Postgres and files are accessible to us exactly as to the service. */
export async function withIdsOf<T>(account: SystemUser | null, work: () => Promise<T>): Promise<T> {
  const giveBack = takeIdsOf(account);
  try {
    return await work();
  } finally {
    giveBack();
  }
}

/** Takes the ids of the service, as its unit has them. Returns a function that restores our own. */
function takeIdsOf(account: SystemUser | null): () => void {
  const { getegid, geteuid, getgroups, setegid, seteuid, setgroups } = process;
  if (!account || !(getegid && geteuid && getgroups && setegid && seteuid && setgroups)) return () => {};
  const own = { uid: geteuid(), gid: getegid(), groups: getgroups() };
  setgroups([account.gid, ...account.groups]);
  setegid(account.gid);
  seteuid(account.uid);
  return () => {
    seteuid(own.uid);
    setegid(own.gid);
    setgroups(own.groups);
  };
}

/** Throws ConfigError if the certificate and key of the service do not fit, or have expired. */
export function checkTlsFiles({ front }: Config): void {
  if (front.tls === null) return;
  const { certFile, keyFile } = front.tls;
  for (const [setting, file] of [
    ['HOLDFAST_TLS_CERT_FILE', certFile],
    ['HOLDFAST_TLS_KEY_FILE', keyFile],
  ] as const)
    if (!existsSync(file)) throw refused(setting, `${file} does not exist`);
  let expiry: Date;
  try {
    const cert = readFileSync(certFile, 'utf8');
    createSecureContext({ cert, key: readFileSync(keyFile, 'utf8') });
    expiry = new Date(new X509Certificate(cert).validTo);
  } catch (error) {
    throw refused('HOLDFAST_TLS_CERT_FILE', `${certFile} and ${keyFile} cannot be used: ${(error as Error).message}`);
  }
  if (expiry.getTime() < Date.now())
    throw refused('HOLDFAST_TLS_CERT_FILE', `the certificate has expired on ${expiry.toISOString()}`);
}

/**
 * Connects to Postgres. Throws PartUnavailableError, and ConfigError if Postgres is too old, or if it has data whose master keys are not
 * known.
 */
export async function checkDatabase(config: Config, wait: StartWait): Promise<void> {
  const { connectTimeoutMs: connectMs, url } = config.database;
  if (url === null) return;
  const { isUsed, version } = await withPostgresAtStart({ ...wait, url, connectMs }, async (client) => {
    const { rows } = await client.query<{ version: number; isUsed: boolean }>(
      `select current_setting('server_version_num')::int as version, to_regclass('holdfast_migrations') is not null as "isUsed"`,
    );
    return rows[0] as { version: number; isUsed: boolean };
  });
  if (version < minPostgres)
    throw refused(
      'HOLDFAST_DATABASE_URL',
      `Postgres ${Math.floor(version / 10_000)} is too old; 15 or later is needed`,
    );
  if (isUsed && config.secrets.masterKeys === null && readMasterKeys(config.dataDir) === null)
    throw refused(
      'HOLDFAST_MASTER_KEYS',
      `the database is in use, and its secrets cannot be read with new keys; set the present ones, or put the file master-keys into ${config.dataDir}`,
    );
}

/** Asks S3 for the bucket. Throws PartUnavailableError if S3 cannot be reached, or rejects the bucket or the credentials. */
export async function checkBucket({ blobs }: Config, wait: StartWait): Promise<void> {
  if (blobs.kind !== 's3') return;
  const { S3BlobStore } = await import('../../shared/platform/blobs/s3-blob-store.ts');
  const store = new S3BlobStore(blobs);
  try {
    await untilBlobStore(blobs, () => store.check(checkMs), wait);
  } finally {
    await store.close();
  }
}

/** Whether the user of the service may read the file, or write to the folder; null: our own user. */
function isAllowed(file: string, access: 'r' | 'w', account: SystemUser | null): boolean {
  const giveBack = takeIdsOf(account);
  try {
    if (!account) accessSync(file, access === 'r' ? constants.R_OK : constants.W_OK);
    // access(2) would check the real ids, which stay ours.
    else if (access === 'r') closeSync(openSync(file, constants.O_RDONLY | constants.O_NONBLOCK));
    else rmdirSync(mkdtempSync(path.join(file, 'setup-')));
    return true;
  } catch {
    return false;
  } finally {
    giveBack();
  }
}

function refused(setting: string, why: string): ConfigError {
  return new ConfigError(`Invalid settings:\n  ${setting}: ${why}`);
}
